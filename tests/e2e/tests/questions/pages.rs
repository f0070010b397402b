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

// ELI-001, ELI-002, SE-05
#[test]
fn gate_form_eli_002_a_question_that_is_neither_a_form_nor_a_page_is_shown_to_nobody() {
    let closed = || json!({ "type": "object", "properties": { "reason": { "type": "string" } } });
    let with = |schema: Value, more: Value| {
        let mut params = json!({ "message": "What now?", "requestedSchema": schema });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "method": "elicitation/create", "params": params })
    };
    let field = json!({ "password": { "type": "string" } });
    let odd = [
        (with(closed(), json!({ "mode": "Url", "url": "file:///etc/passwd" })), "its mode"),
        (with(closed(), json!({ "mode": 5 })), "its mode"),
        (with(closed(), json!({ "mode": null })), "its mode"),
        (with(closed(), json!({ "mode": "form", "url": "javascript:1" })), "names an address"),
        (with(json!([]), json!({})), "is no object"),
        (with(json!({ "type": "array", "properties": {} }), json!({})), "of the type `object`"),
        (with(json!({ "type": "object", "allOf": [{ "properties": field }] }), json!({})), "`allOf`"),
        (with(json!({ "type": "object", "patternProperties": field }), json!({})), "`patternProperties`"),
        (
            with(json!({ "type": "object", "additionalProperties": true }), json!({})),
            "`additionalProperties`",
        ),
        (json!({ "method": "elicitation/create", "params": { "message": "m" } }), "no `requestedSchema`"),
    ];
    for era in [LEGACY, MODERN] {
        let sandbox = server(era, "");
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize_with(ALL);
        for (id, (asked, _)) in (100..).zip(&odd) {
            let reply = call(&mut client, id, std::slice::from_ref(asked));
            assert!(heard(&reply).to_string().contains("decline"), "{asked}: {reply}");
        }
        let rows = events(&sandbox, "mcp_elicitation_auto_declined");
        assert_eq!(rows.len(), odd.len(), "{rows:?}");
        for (row, (_, why)) in rows.iter().zip(&odd) {
            assert!(row["details"]["detail"].as_str().unwrap().contains(why), "{why}: {row}");
        }
        let fields = json!({
            "reason": { "type": "string" },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "count": { "type": ["integer", "null"] },
        });
        let closed = json!({ "type": "object", "properties": fields, "additionalProperties": false, "title": "T", "$defs": {} });
        send(&mut client, 200, &ask_params(&[with(closed, json!({ "mode": "form" }))]));
        let shown = next(&mut client);
        assert_eq!(shown["method"], "elicitation/create", "what is usual is shown: {shown}");
        answer(&mut client, &shown, &json!({ "action": "decline" }));
        assert_eq!(next(&mut client)["id"], 200);
    }
}
