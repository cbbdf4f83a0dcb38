//! The contract of the trait `Store`, one test per statement.
//!
//! A test is a function that receives a new, empty store. The list at the end has all tests; a new kind of
//! store is a function in `places.rs` and a line in `on_every_store`.

mod accepting;
mod naming;
mod rewriting;
mod searching;
mod sharing;

macro_rules! on_every_store {
    ($($topic:ident: $($test:ident)*;)*) => {
        on_every_store!(@ memory $($($topic $test)*)*);
        on_every_store!(@ sqlite $($($topic $test)*)*);
        #[cfg(all(unix, feature = "postgres"))]
        on_every_store!(@ postgres $($($topic $test)*)*);
        #[cfg(all(unix, feature = "postgres"))]
        on_every_store!(@ pgbouncer $($($topic $test)*)*);
    };
    (@ $place:ident $($topic:ident $test:ident)*) => {
        mod $place {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let place = crate::places::$place().await;
                super::$topic::$test(&*place.store).await;
            })*
        }
    };
}

on_every_store! {
    naming:
        a_created_conversation_is_found
        a_name_or_an_id_that_is_taken_is_refused
        names_are_listed_in_order_page_by_page
        names_that_no_store_could_keep_are_refused
        a_renamed_conversation_is_found_by_its_new_name_only
        a_conversation_is_found_by_its_id_as_long_as_it_has_a_name
        a_conversation_can_be_removed_only_at_a_version
        a_removal_replaces_rows_and_is_all_or_nothing
        a_policy_is_stored_unchanged_and_can_be_removed
        tenants_do_not_see_each_other;
    accepting:
        versions_are_dense
        exactly_one_of_two_writers_succeeds
        all_of_many_writers_succeed_if_they_retry
        commits_above_a_version_are_returned_in_order
        a_conversation_that_does_not_exist_is_named_in_the_error
        a_key_is_kept_with_its_request_and_only_once
        a_key_can_be_kept_for_a_request_that_changed_nothing
        a_refused_request_leaves_nothing
        packed_rows_become_pages_in_one_step
        the_newest_row_is_never_packed
        rows_that_have_changed_are_not_packed
        pages_are_found_by_the_numbers_that_they_contain
        rows_of_several_conversations_are_those_of_each
        large_and_unusual_bytes_are_returned_unchanged
        a_request_that_is_dropped_is_applied_completely_or_not_at_all;
    sharing:
        rows_of_a_removed_conversation_stay_while_forks_share_them
        removing_a_conversation_removes_all_of_its_rows
        several_conversations_are_found_by_their_ids
        a_removed_conversation_accepts_no_requests_and_its_rows_stay_for_forks
        a_name_can_be_used_again
        forks_are_listed_whether_direct_or_not
        a_removed_conversation_or_one_of_another_tenant_cannot_be_forked;
    searching:
        an_entry_is_found_if_it_has_all_words
        the_newest_entry_is_first_and_the_limit_applies
        another_tenants_words_are_not_found
        every_script_has_words
        entries_are_found_also_while_they_wait_for_the_index
        a_removed_conversation_is_not_found;
    rewriting:
        rows_are_replaced_and_words_removed
        a_rewrite_of_another_version_is_refused
        a_rewrite_of_rows_that_have_changed_is_refused
        only_existing_rows_can_be_replaced
        a_rewrite_that_ignores_a_fork_is_refused
        a_check_of_an_undamaged_store_finds_nothing;
}
