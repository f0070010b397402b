//! How much a server may ask at once, and how large its forms and addresses may be.

use super::*;

/// So many fields of a form.
fn fields(count: usize) -> Value {
    (0..count).map(|number| (format!("f{number}"), json!({ "type": "string" }))).collect()
}

/// A page whose address has so many characters.
fn page(length: usize) -> Value {
    let start = "https://example.com/";
    let url = format!("{start}{}", "p".repeat(length - start.len()));
    let params = json!({ "mode": "url", "message": "Sign in", "url": url, "elicitationId": "e" });
    json!({ "method": "elicitation/create", "params": params })
}

#[test]
fn gate_forms_what_is_too_large_to_be_read_is_declined_and_seen_by_nobody_and_a_long_text_is_cut() {
    for era in [LEGACY, MODERN] {
        let sandbox = server(era, "");
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize_with(ALL);
        let key = |length: usize| form(&json!({ ("n".repeat(length)): { "type": "string" } }));
        let refused = [
            (form(&fields(65)), "its form has more than 64 fields"),
            (key(129), "a name of a field of its form cannot be shown"),
            (page(2_049), "its address is longer than 2048 characters"),
        ];
        for (id, (asked, _)) in (100..).zip(&refused) {
            let reply = call(&mut client, id, std::slice::from_ref(asked));
            assert!(heard(&reply).to_string().contains("decline"), "{reply}");
        }
        let rows = events(&sandbox, "mcp_elicitation_auto_declined");
        assert_eq!(rows.len(), refused.len(), "{rows:?}");
        for (row, (_, why)) in rows.iter().zip(&refused) {
            assert!(row["details"]["detail"].as_str().unwrap().contains(why), "{why}: {row}");
        }
        // What is no larger is shown, a text as far as somebody would read it.
        let mut long = form(&fields(64));
        long["params"]["message"] = json!("m".repeat(4_001));
        for (id, asked) in (200..).zip([long, key(128), page(2_048)]) {
            send(&mut client, id, &ask_params(&[asked]));
            let question = question(&mut client);
            let message = question["params"]["message"].as_str().unwrap();
            if id == 200 {
                assert!(message.ends_with(&format!("\n{}… (cut)", "m".repeat(4_000))), "{message}");
                let shown = &question["params"]["requestedSchema"]["properties"];
                assert_eq!(shown.as_object().unwrap().len(), 64);
            }
            answer(&mut client, &question, &json!({ "action": "decline" }));
            assert_eq!(next(&mut client)["id"], id);
        }
    }
}

#[test]
fn gate_inputs_a_server_that_asks_more_than_sixteen_questions_at_once_is_given_up() {
    let sandbox = server(MODERN, "");
    let mut client = sandbox.serve_stdio(&[]);
    let round = modern(&mut client, 100, ALL, &ask_params(&vec![reason_form(); 16]));
    assert_eq!(round["result"]["inputRequests"].as_object().unwrap().len(), 16, "{round}");
    let reply = modern(&mut client, 101, ALL, &ask_params(&vec![reason_form(); 17]));
    let error = reply.pointer("/result/_meta/toolgate~1error").unwrap_or_else(|| panic!("{reply}"));
    assert_eq!(error["code"], "server_misbehaved", "{reply}");
    assert!(reply.to_string().contains("asks more than 16 questions at once"), "{reply}");
    assert_eq!(events(&sandbox, "mcp_elicitation_requested").len(), 16, "nobody saw one of them");
}
