//! What installers propose, from plain values.

use super::*;

fn words(command: &CommandLine) -> String {
    let arguments = command.arguments.iter().map(|value| match value {
        Value::Literal(text) => text.as_str(),
        Value::Secret(_) | Value::Setting(_) => "?",
    });
    [command.program.as_str()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

#[test]
fn fr_52_each_kind_of_package_is_started_by_its_own_program_in_exactly_one_version() {
    for (package, name, version, started) in [
        (Package::Npm, "@acme/notes", "1.2.3", "npx -y @acme/notes@1.2.3 server"),
        (Package::PyPi, "notes", "0.4.0", "uvx notes==0.4.0 server"),
        (Package::Image, "ghcr.io/acme/notes", "1.2.3", "docker run --rm -i ghcr.io/acme/notes:1.2.3 server"),
        (Package::NuGet, "Acme.Notes", "1.0.0", "dnx Acme.Notes@1.0.0 --yes server"),
    ] {
        assert_eq!(words(&package.command(name, version, &["server"]).unwrap()), started);
    }
    let digest = format!("sha256:{}", "0".repeat(64));
    let image = Package::Image.command("acme/notes", &digest, &[]).unwrap();
    assert!(words(&image).ends_with(&format!("acme/notes@{digest}")));
    for version in ["", "latest", "^1.2.3", "1.x", "*", ">=1", "1..2", "1 || 2"] {
        assert!(Package::Npm.command("notes", version, &[]).is_err(), "{version}");
    }
    for name in ["", "--eval", "a b"] {
        assert!(Package::Npm.command(name, "1.0.0", &[]).is_err(), "{name}");
    }
}

#[test]
fn fr_52_of_repositories_only_the_reference_servers_are_known_and_another_is_an_error() {
    let known = "modelcontextprotocol/servers/src/filesystem";
    for repository in [known.to_owned(), format!("https://github.com/{known}/")] {
        assert_eq!(reference_package(&repository).unwrap(), "@modelcontextprotocol/server-filesystem");
    }
    for other in ["acme/notes", "modelcontextprotocol/servers", "modelcontextprotocol/servers/src/../x", ""] {
        let Err(Error::NotFound(why)) = reference_package(other) else { panic!("{other}") };
        assert!(why.contains("npm:NAME"), "{why}");
    }
}

#[test]
fn fr_52_of_several_entries_the_marked_one_counts_and_else_the_highest_version() {
    assert_eq!(newest([("1.0.0", false), ("0.9.0", true), ("2.0.0", false)]), Some("0.9.0"));
    assert_eq!(newest([("1.10.0", false), ("1.9.0", false), ("1.10.0-rc.2", false)]), Some("1.10.0"));
    assert_eq!(
        newest([("1.0.0-rc.2", false), ("1.0.0-rc.10", false), ("1.0.0-beta", false)]),
        Some("1.0.0-rc.10")
    );
    assert_eq!(newest([("nightly", false), ("0.0.1", false)]), Some("0.0.1"));
    assert_eq!(newest([]), None);
    assert_eq!(description("  Notes\n\tand\u{a0}more "), "Notes and more");
    assert_eq!(description(&"x".repeat(5_000)).chars().count(), MAX_DESCRIPTION);
}

#[test]
fn fr_22_an_id_is_one_segment_of_a_path() {
    assert_eq!(segment("io.github.o/srv"), "io.github.o%2Fsrv");
    assert_eq!(segment("a b?c#d%2F/../é"), "a%20b%3Fc%23d%252F%2F..%2F%C3%A9");
    assert_eq!(segment("plain-1.0_x~y"), "plain-1.0_x~y");
}

#[test]
fn fr_24_a_server_is_called_by_its_name_and_not_by_what_it_is_and_two_are_told_apart() {
    for (id, name) in [
        ("io.github.acme/mcp-server-notes", "notes"),
        ("@modelcontextprotocol/server-filesystem", "filesystem"),
        ("acme/notes-mcp", "notes"),
        ("mcp-server-", "mcp-server-"),
        ("server", "server"),
        ("acme/a___b", "a_b"),
        ("../..", "server"),
        ("", "server"),
    ] {
        assert_eq!(server_name(id), name, "{id}");
    }
    assert_eq!(server_name(&"x".repeat(200)).len(), 64);
    assert_eq!(named_apart("notes", &["files"]), "notes");
    assert_eq!(named_apart("notes", &["Notes", "notes-2"]), "notes-3");
}

#[test]
fn fr_26_what_a_source_does_not_have_is_said_with_the_ways_on() {
    let Error::NotFound(why) = not_found("acme/notes", "the catalogue") else { panic!() };
    assert!(why.contains("acme/notes") && why.contains("search") && why.contains("npm:NAME"), "{why}");
}
