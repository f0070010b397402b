//! Pages that a server sends a person to, by their address.

use super::*;

// SE-05
#[test]
fn se_05_no_page_whose_scheme_runs_or_reads_something_is_shown_to_anybody() {
    let page = |url: &str| json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Sign in", "url": url, "elicitationId": "e" } });
    let schemes =
        ["file:///etc/passwd", "javascript:alert(1)", "smb://h/s", "vbscript:x", "data:text/html,x"];
    for era in [LEGACY, MODERN] {
        let sandbox = server(era, "");
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize_with(ALL);
        for (index, url) in schemes.into_iter().enumerate() {
            // A reply and no question: nothing that could open it was shown it.
            let reply = call(&mut client, 100 + u32::try_from(index).unwrap(), &[page(url)]);
            let said = heard(&reply);
            let said = said.as_array().and_then(|all| all.first()).or_else(|| said.get("input 0"));
            assert_eq!(said, Some(&json!({ "action": "decline" })), "{url}: {reply}");
        }
        let refused = events(&sandbox, "mcp_elicitation_auto_declined");
        assert_eq!(refused.len(), schemes.len(), "{refused:?}");
        for (row, url) in refused.iter().zip(schemes) {
            let scheme = url.split(':').next().unwrap();
            assert!(row["details"]["detail"].as_str().unwrap().contains(&format!("`{scheme}`")), "{row}");
        }
    }
}

// SE-05, FM-10
#[test]
fn gate_page_address_se_05_a_page_is_shown_as_browsers_open_it_or_not_at_all() {
    let page = |url: &str| json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "Sign in", "url": url, "elicitationId": "e" } });
    let sandbox = server(LEGACY, "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize_with(ALL);
    let tricks = [
        "https:\\\\evil.example/",
        "https://good.example\\@evil.example/",
        "https://good.exam\nple/",
        "https://good.example/\tx",
        "https://good.example@evil.example/",
        "https://0x7f.1/",
        "https://good.example/a/../../b",
        "https://g\u{43e}\u{43e}gle.com/",
    ];
    for (index, url) in tricks.into_iter().enumerate() {
        let reply = call(&mut client, 100 + u32::try_from(index).unwrap(), &[page(url)]);
        let said = heard(&reply);
        let said = said.as_array().and_then(|all| all.first()).or_else(|| said.get("input 0"));
        assert_eq!(said, Some(&json!({ "action": "decline" })), "{url:?}: {reply}");
    }
    assert_eq!(events(&sandbox, "mcp_elicitation_auto_declined").len(), tricks.len());
    send(&mut client, 200, &ask_params(&[page("https://b\u{fc}cher.example/\u{fc}")]));
    let shown = next(&mut client);
    assert_eq!(shown["params"]["url"], "https://xn--bcher-kva.example/%C3%BC", "{shown}");
    let message = shown["params"]["message"].as_str().unwrap();
    assert!(message.ends_with("The page is at xn--bcher-kva.example."), "{message}");
    answer(&mut client, &shown, &json!({ "action": "decline" }));
    assert_eq!(next(&mut client)["id"], 200);
}
