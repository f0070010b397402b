//! Which pins raise an objection, and what the operator reads about it.

use toolgate_sdk::words::subject;
use toolgate_sdk::{PinState, SurfaceKind};

use super::{fine, pin_text, surface_text};

#[test]
fn only_a_pin_that_matches_or_does_not_exist_is_fine() {
    assert!(fine(PinState::Matches) && fine(PinState::Unpinned));
    for pin in [PinState::Differs, PinState::Unknown, PinState::Unreadable] {
        assert!(!fine(pin), "{pin:?}");
    }
}

#[test]
fn trb_004_a_changed_tool_set_says_so_with_the_new_hash() {
    let text = surface_text(PinState::Differs, "github", Some("sha256:00ff"));
    let changed = text.find("tool set changed").unwrap();
    let refusing = text.find("refusing to register").unwrap();
    assert!(changed < refusing && text.contains("sha256:00ff"), "{text}");
}

#[test]
fn pi_02_a_changed_definition_names_the_tool_and_how_to_review_and_accept_it() {
    let text = pin_text(PinState::Differs, &subject(SurfaceKind::Tool, "read"), "files");
    for part in ["tool `read`", "changed", "mcp diff files", "mcp pin files --accept"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn a_tool_that_appears_on_a_pinned_server_is_blocked_until_accepted() {
    let text = pin_text(PinState::Unknown, &subject(SurfaceKind::Tool, "new"), "files");
    assert!(text.contains("not among the pinned definitions"), "{text}");
}

#[test]
fn pi_05_pins_that_cannot_be_read_are_a_refusal_with_a_way_to_repair() {
    for text in [
        pin_text(PinState::Unreadable, "tool `read`", "files"),
        surface_text(PinState::Unreadable, "files", None),
    ] {
        assert!(text.contains("cannot be read") && text.contains("repair"), "{text}");
    }
}
