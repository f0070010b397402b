//! The lines of the documents that no test can run as they stand, and what covers each.

/// A line that a test cannot run.
pub(super) struct NotRun {
    /// How it begins.
    pub(super) begins: &'static str,
    /// Why it is not run here.
    pub(super) why: &'static str,
    /// The test, or the file of the tree, that covers it.
    pub(super) covered_by: &'static str,
}

/// Every such line of the documents; one that is not here fails the test, and so does an entry that
/// no document needs.
pub(super) const NOT_RUN: &[NotRun] = &[
    NotRun {
        begins: "cargo run --release -- quickstart",
        why: "builds everything",
        covered_by: "tests/xtask/src/test.rs",
    },
    NotRun { begins: "cargo xtask test", why: "runs this test", covered_by: ".ci/run" },
    NotRun {
        begins: "cargo xtask build-plugins",
        why: "needs a guest toolchain and signs",
        covered_by: "tests/xtask/src/build_plugins.rs",
    },
    NotRun {
        begins: "toolgate operator init",
        why: "needs somebody at a terminal",
        covered_by: "the_pin_typed_at_a_terminal_opens_and_is_not_shown",
    },
    NotRun {
        begins: "toolgate plugin publish guard oci:",
        why: "needs an OCI registry",
        covered_by: "card_012_a_plugin_goes_through_a_registry_without_referrers_by_the_fallback_tag",
    },
    NotRun {
        begins: "toolgate mcp record github",
        why: "needs that server",
        covered_by: "record_keeps_what_plugins_are_asked_and_no_secret",
    },
    NotRun {
        begins: "toolgate plugin update acme/guard --dry-run",
        why: "needs two releases",
        covered_by: "an_update_that_is_only_tried_shows_where_the_answers_differ_and_changes_nothing",
    },
    NotRun {
        begins: "toolgate plugin verify acme/guard --rebuild",
        why: "compiles",
        covered_by: "gate_rebuild_what_was_signed_is_what_its_sources_give_and_a_changed_source_is_refused",
    },
    NotRun {
        begins: "toolgate plugin install oci:",
        why: "needs an OCI registry",
        covered_by: "card_012_a_plugin_goes_through_a_registry_without_referrers_by_the_fallback_tag",
    },
    NotRun {
        begins: "toolgate mcp subscribe",
        why: "waits for a server",
        covered_by: "res_015_res_016_res_020_the_command_line_subscribes_shows_what_stands_and_follows",
    },
    NotRun {
        begins: "toolgate registry serve",
        why: "never ends",
        covered_by: "a_registry_is_served_verified_and_mirrored_over_http",
    },
    NotRun {
        begins: "toolgate serve --listen",
        why: "never ends",
        covered_by: "gate_caller_only_a_token_opens_the_endpoint_and_it_fixes_the_persona",
    },
];
