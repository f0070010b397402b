use super::*;

fn target(persona: Option<&str>, server: Option<&str>) -> Target {
    Target { persona: persona.map(str::to_owned), server: server.map(str::to_owned) }
}

#[test]
fn a_path_names_a_persona_and_a_server_and_nothing_else_is_an_endpoint() {
    assert_eq!(Target::of("/mcp"), Some(target(None, None)));
    assert_eq!(Target::of("/mcp/"), Some(target(None, None)));
    assert_eq!(Target::of("/mcp/coder"), Some(target(Some("coder"), None)));
    assert_eq!(Target::of("/mcp/coder/"), Some(target(Some("coder"), None)));
    assert_eq!(Target::of("/mcp/coder/git.hub"), Some(target(Some("coder"), Some("git.hub"))));
    for path in ["/", "/mcpx", "/mcp//", "/mcp//x", "/mcp/a/b/c", "/mcp/a%2Fb", "/mcp/a//", "/.well-known/x"]
    {
        assert_eq!(Target::of(path), None, "{path}");
    }
}
