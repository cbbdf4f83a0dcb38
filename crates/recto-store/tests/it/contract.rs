//! What every store does, sentence by sentence of the trait's docs.
//!
//! Tests are functions that are given a new, empty store. The list at the end has all of them; a
//! new store is one more line in `on_every_store`.

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
        what_is_created_is_found
        a_name_or_an_id_that_is_taken_is_refused
        names_are_listed_in_order_page_by_page
        names_that_no_store_could_keep_are_refused
        a_renamed_conversation_is_found_by_its_new_name_only
        a_conversation_is_found_by_its_id_as_long_as_it_has_a_name
        a_conversation_can_be_removed_only_at_a_version
        a_policy_is_kept_as_it_is_and_can_be_taken_away
        tenants_do_not_see_each_other;
    accepting:
        versions_are_dense
        of_two_writers_exactly_one_wins
        many_writers_who_try_again_all_get_through
        commits_above_a_version_come_in_order
        a_conversation_that_does_not_exist_is_named_in_the_error
        a_key_is_kept_with_its_request_and_only_once
        a_key_can_be_kept_for_a_request_that_changed_nothing
        a_refused_request_leaves_nothing
        sealed_rows_move_to_pages_at_once
        the_newest_row_is_never_packed
        rows_that_have_changed_are_not_packed
        pages_are_found_by_what_they_hold
        large_and_odd_bytes_come_back_as_they_were
        an_answer_that_nobody_waits_for_changes_nothing;
    sharing:
        rows_outlive_their_name_while_forks_share_them
        a_removed_conversation_is_gone_with_all_that_belongs_to_it
        a_removed_conversation_takes_no_requests_and_its_rows_stay_for_forks
        a_name_can_be_used_again
        forks_are_listed_whether_direct_or_not
        nothing_can_be_forked_from_what_is_gone_or_somebody_elses;
    searching:
        all_words_must_be_there
        the_newest_entry_comes_first_and_the_limit_holds
        within_gives_conversations_and_how_much_of_each
        another_tenants_words_are_not_found
        every_script_has_words
        many_entries_are_found_wherever_they_are_kept
        a_removed_conversation_is_not_found;
    rewriting:
        rows_are_replaced_and_words_forgotten
        a_rewrite_of_another_version_is_refused
        a_rewrite_of_rows_that_were_rewritten_meanwhile_is_refused
        only_rows_that_are_there_can_be_replaced
        a_rewrite_that_does_not_know_a_fork_is_refused
        a_sound_store_has_no_damage;
}
