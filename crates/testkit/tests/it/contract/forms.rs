//! The fields of operations in the three input forms (section 5).

use serde_json::{Value, json};

use super::{append, apply, model, refused};

#[test]
fn empty_indices_are_refused_except_by_arrange() {
    let mut model = model();
    for name in ["DELETE", "COMPRESS", "RESTORE", "replace"] {
        let op = json!({"operation": name, "indices": []});
        assert_eq!(refused(&mut model, op), "invalid_operation", "{name}");
    }
    let arrange = apply(&mut model, json!({"operation": "ARRANGE", "indices": []}));
    assert_eq!((arrange.batch, arrange.warnings), (1, vec![("view_empty", vec![])]));
}

#[test]
fn batch_in_batch_start_is_the_number_of_the_new_batch_and_is_checked_before_the_boundary() {
    let mut model = model();
    append(&mut model, &["a"]);
    let start = json!({"operation": "batch_start", "indices": [9], "batch": 4});
    let refusal = model.apply(&json!({"op": start}), 2_000).unwrap_err();
    assert_eq!((refusal.code, refusal.field), ("invalid_operation", Some("batch")));
    assert_eq!(refusal.details.as_deref(), Some(&json!({"expected": 4, "actual": 1})));
    let start = json!({"operation": "batch_start", "indices": [9], "batch": 1});
    assert_eq!(refused(&mut model, start), "index_out_of_range");
    // `batch` is tested when the operation is performed.
    let start = |batch: usize| json!({"operation": "batch_start", "indices": [0], "batch": batch});
    let both = model.apply(&json!({"ops": [start(1), start(2)]}), 2_000).unwrap();
    assert_eq!(both.batch, 2);
    let missing = json!({"operation": "DELETE", "indices": [9]});
    let refusal = model.apply(&json!({"ops": [missing, start(9)]}), 2_000).unwrap_err();
    assert_eq!(refusal.code, "index_out_of_range");
}

#[test]
fn batch_end_takes_its_target_from_indices_or_batch_or_both() {
    let mut model = model();
    append(&mut model, &["a"]);
    for (indices, batch) in
        [(json!([]), json!(0)), (json!([0]), json!(0)), (json!([0]), json!(null))]
    {
        apply(&mut model, json!({"operation": "BATCH_START"}));
        let end = json!({"operation": "batch_end", "indices": indices, "batch": batch});
        assert_eq!(apply(&mut model, end).batch, 0);
    }
    let end = json!({"operation": "batch_end", "indices": [0], "batch": 7});
    assert_eq!(refused(&mut model, end), "invalid_operation");
    let end = json!({"operation": "batch_end", "indices": [], "batch": 7});
    assert_eq!(refused(&mut model, end), "batch_not_found");
    assert_eq!(refused(&mut model, json!({"operation": "batch_end"})), "invalid_operation");
}

#[test]
fn insert_in_the_modification_form_ignores_its_indices_with_a_warning() {
    let mut model = model();
    let insert = |indices: Value| {
        json!({"operation": "insert", "indices": indices,
            "data": {"role": "user", "content": "x"}})
    };
    let outcome = apply(&mut model, insert(json!([7, 3, 7])));
    assert_eq!((outcome.view, outcome.warnings), (vec![0], vec![("ignored_indices", vec![3, 7])]));
    assert!(apply(&mut model, insert(json!([]))).warnings.is_empty());
    assert_eq!(refused(&mut model, insert(json!(["3"]))), "invalid_operation");
}

#[test]
fn null_is_an_absent_section_of_the_older_forms_only() {
    let mut model = model();
    append(&mut model, &["a", "b"]);
    let truncate = json!({"operation": "truncate", "truncate": {"keepLast": 1},
        "insert": null, "replace": null, "clear": null, "filter": null});
    assert_eq!(apply(&mut model, truncate).view, [1]);
    let insert = json!({"operation": "insert", "insert": null, "clear": null, "indices": [],
        "data": {"role": "user", "content": "c"}});
    assert_eq!(apply(&mut model, insert).view, [1, 2]);
    for op in [
        json!({"operation": "truncate", "truncate": {"keepLast": 1}, "delete": null}),
        json!({"operation": "TRUNCATE", "keepLast": 1, "filter": null}),
        json!({"operation": "insert", "insert": null}),
        json!({"operation": "filter", "filter": null}),
    ] {
        assert_eq!(refused(&mut model, op.clone()), "invalid_operation", "{op}");
    }
}

#[test]
fn numbers_are_whole_numbers_from_0() {
    let mut model = model();
    append(&mut model, &["a"]);
    for wrong in [json!(2.0), json!(-1), json!("2"), json!(1e3), json!(true), json!([1])] {
        let op = json!({"operation": "TRUNCATE", "keepLast": wrong});
        assert_eq!(refused(&mut model, op), "invalid_operation", "{wrong}");
    }
    let largest = json!({"operation": "TRUNCATE", "keepLast": u64::MAX});
    assert_eq!(apply(&mut model, largest).view, [0]);
}
