use super::*;
use crate::testing::Home;

#[test]
fn no_secret_is_shown_whoever_wrote_it_sec_004_sec_017_se_12() {
    let mut home = Home::with_config(
        "servers:\n  \
           a:\n    command: npx\n    args: [\"--token\", \"${T}\", \"--api-key=ghx_77\", \"--key\", sk-literal-1, plain]\n    \
             env: { GH_TOKEN: ghx_7, LEVEL: debug }\n  \
           b:\n    url: \"https://u:pw@h/?key=q1&z\"\n    headers: { Authorization: \"Bearer ${T}\", X-Team: core }\n  \
           c:\n    url: \"https://${H}/${T}\"\n    adapter: { plugin: acme/x, settings: { k: \"${T}\" } }\n\
         plugins:\n  load: [{ plugin: acme/y, settings: { k: \"${T}\" }, grants: { secrets: { x: \"${T}\" } } }]\n",
    );
    home.set("T", "sk-9f").set("H", "host-7");
    let config = home.load().unwrap();
    let shown = masked(&config).to_string();
    let debugged = format!("{config:?}");
    for secret in ["sk-9f", "ghx_7", "pw@", "q1", "sk-literal"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    for secret in ["sk-9f", "ghx_7", "pw@", "q1"] {
        let of_servers: Vec<String> =
            config.servers.values().map(|server| format!("{:?}", server.transport)).collect();
        assert!(!of_servers.concat().contains(secret), "{secret}");
        assert!(!crate::testing::all(&config.warnings).contains(secret), "{secret}");
    }
    assert!(!debugged.contains("sk-9f"), "{debugged}");
    let shown = masked(&config);
    assert_eq!(
        shown["servers"]["a"]["args"],
        json!(["--token", "${T}", "--api-key=***", "--key", "***", "plain"])
    );
    assert_eq!(shown["servers"]["a"]["env"], json!({ "GH_TOKEN": "***", "LEVEL": "***" }));
    assert_eq!(shown["servers"]["b"]["url"], "https://***:***@h/?key=***&z=***");
    assert_eq!(shown["servers"]["b"]["headers"], json!({ "Authorization": "***", "X-Team": "***" }));
    assert_eq!(shown["servers"]["c"]["url"], "https://${H}/${T}");
    assert_eq!(shown["servers"]["c"]["adapter"]["settings"], json!({ "k": "${T}" }));
    assert_eq!(shown["plugins"]["load"][0]["grants"], json!({ "secrets": { "x": "${T}" } }));
}

#[test]
fn each_server_says_which_layer_it_comes_from() {
    let home = Home::with_config("servers: {a: {command: x}}\n");
    crate::managed::write_server(&home.data_dir(), &crate::managed::ManagedServer::http("b", "https://h/"))
        .unwrap();
    let shown = masked(&home.load().unwrap());
    assert_eq!(shown["servers"]["a"]["origin"], "operator");
    assert!(shown["servers"]["b"]["origin"].as_str().unwrap().ends_with("servers.d/b.yaml"));
    assert_eq!(shown["servers"]["a"]["timeouts"]["max_total"], "15m");
    assert_eq!(shown["servers"]["a"]["timeouts"]["task_lost"], "1h");
}

#[test]
fn urls_are_masked_and_what_is_no_url_is_masked_whole() {
    for (url, shown) in [
        ("https://h/mcp", "https://h/mcp"),
        ("https://h/mcp?sk-9f", "https://h/mcp?***"),
        ("https://tok@h/", "https://***@h/"),
        ("https://h:8443/a?x=1#", "https://h:8443/a?x=***#"),
        ("no url sk-9f", "***"),
    ] {
        assert_eq!(mask_url(url), shown, "{url}");
    }
}

#[test]
fn what_a_template_of_a_url_writes_out_is_masked_and_its_variables_stay_se_12() {
    for (template, shown) in [
        ("https://me:hunter22@${HOST}/mcp", "https://***:***@${HOST}/mcp"),
        ("https://${USER}:${PASSWORD}@a.example/mcp", "https://${USER}:${PASSWORD}@a.example/mcp"),
        ("https://me:${PASSWORD:-hunter22}@a.example", "https://***:***@a.example"),
        ("https://${HOST:-a/b}/@scope/x?key=hunter22&q=${Q}", "https://${HOST:-a/b}/@scope/x?key=***&q=${Q}"),
        ("${BASE}/mcp?hunter22", "${BASE}/mcp?***"),
    ] {
        assert_eq!(mask_template(template), shown, "{template}");
    }
}
