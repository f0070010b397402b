//! Which of two entries is left out, and for whom.

use super::*;
use crate::model::DEFAULT_PERSONA;
use crate::skill::Lane;

fn left(entries: Vec<Server>) -> (Vec<String>, Vec<String>) {
    let mut persona = Persona::named(DEFAULT_PERSONA);
    persona.servers = entries.iter().map(|server| server.name.clone()).collect();
    persona.bind_lanes(&BTreeMap::new());
    let servers = entries.into_iter().map(|server| (server.name.clone(), server)).collect();
    let mut personas = BTreeMap::from([(DEFAULT_PERSONA.to_owned(), persona)]);
    let mut notices = Vec::new();
    leave_out(&servers, &mut personas, &mut notices);
    let persona = &personas[DEFAULT_PERSONA];
    assert_eq!(persona.servers, persona.servers_in(Lane::Main));
    (persona.servers.clone(), notices.iter().map(ToString::to_string).collect())
}

#[test]
fn ded_001_trb_006_a_second_entry_of_one_url_is_skipped_and_both_are_named() {
    let (kept, told) = left(vec![
        Server::http("a", "https://example.com/mcp"),
        Server::http("b", "https://EXAMPLE.com:443/mcp"),
    ]);
    assert_eq!(kept, ["a"]);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("servers a and b") && told[0].contains("b is skipped"), "{told:?}");
}

#[test]
fn ded_001_entries_that_differ_in_anything_stay_and_are_named() {
    let filtered = |name: &str| {
        let mut server = Server::http(name, "https://example.com/mcp");
        server.tools.deny.push(name.to_owned());
        server
    };
    let (kept, told) = left(vec![filtered("a"), filtered("b")]);
    assert_eq!(kept, ["a", "b"]);
    assert!(told[0].contains("both stay"), "{told:?}");
    let (kept, told) = left(vec![
        Server::http("a", "https://example.com/mcp"),
        Server::http("b", "https://example.com/other"),
    ]);
    assert_eq!((kept.len(), told.len()), (2, 0));
}

#[test]
fn trb_006_one_command_under_two_names_is_told_and_skipped_for_nobody() {
    let of = |name: &str| Server::stdio(name, "npx", vec!["x".to_owned()]);
    let (kept, told) = left(vec![of("a"), of("b")]);
    assert_eq!(kept, ["a", "b"]);
    assert!(told[0].contains("the same command"), "{told:?}");
}
