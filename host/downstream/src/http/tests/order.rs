//! What is refused, and before what.

use super::client::{Request, Server, call, message};
use serde_json::json;

use crate::options::{HttpOptions, TokenCheck};
use crate::{HttpServer, ServeError};

#[tokio::test]
async fn gw_05_foreign_origins_and_hosts_are_refused_before_anything_else() {
    let server = Server::start().await;
    let hello = message(1, "initialize", json!({ "protocolVersion": "2025-11-25" })).to_string();
    let origin = Request::post(&hello).header("Origin", "http://evil.example");
    assert_eq!(server.send(origin.clone()).await.status, 403);
    // Before the token: without one it is still the origin that is refused.
    assert_eq!(server.send(origin.anonymous()).await.status, 403);
    assert_eq!(server.send(Request::post(&hello).host("evil.example")).await.status, 403);
    assert_eq!(server.send(Request::post(&hello)).await.status, 200);
}

#[tokio::test]
async fn an_allowed_origin_is_served_and_told_so() {
    let server = Server::with(|options| options.allowed_origins = vec!["https://app.example".into()]).await;
    let hello = message(1, "initialize", json!({ "protocolVersion": "2025-11-25" })).to_string();
    let reply = server.send(Request::post(&hello).header("Origin", "https://app.example")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("access-control-allow-origin").unwrap(), "https://app.example");
    let preflight = Request::new("OPTIONS", "").anonymous().header("Origin", "https://app.example");
    assert_eq!(server.send(preflight).await.status, 204);
    assert_eq!(
        server.send(Request::new("OPTIONS", "").header("Origin", "https://x.example")).await.status,
        403
    );
}

#[tokio::test]
async fn a_request_without_a_valid_token_is_challenged_and_its_body_is_not_read() {
    let server = Server::start().await;
    let reply = server.send(Request::post("not even JSON").anonymous()).await;
    assert_eq!(reply.status, 401);
    assert!(reply.header("www-authenticate").unwrap().starts_with("bearer realm"));
    let reply = server.send(Request::post("{}").token("stolen")).await;
    assert_eq!(reply.status, 401);
    assert!(reply.header("www-authenticate").unwrap().contains("invalid_token"));
    let basic = Request::post("{}").anonymous().header("Authorization", "Basic YWxwaGE6");
    assert_eq!(server.send(basic).await.status, 401);
    assert_eq!(server.send(Request::post("{}").token("unreadable")).await.status, 503);
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn a_persona_in_the_path_or_in_a_header_must_be_the_tokens_own() {
    let server = Server::start().await;
    let hello = message(1, "initialize", json!({ "protocolVersion": "2025-11-25" })).to_string();
    assert_eq!(server.send(Request::post(&hello).path("/mcp/coder")).await.status, 200);
    assert_eq!(server.send(Request::post(&hello).path("/mcp/coder/github")).await.status, 200);
    assert_eq!(server.send(Request::post(&hello).path("/mcp/researcher")).await.status, 403);
    assert_eq!(server.send(Request::post(&hello).path("/mcp/researcher").token("gamma")).await.status, 200);
    assert_eq!(
        server.send(Request::post(&hello).header("X-Toolgate-Persona", "researcher")).await.status,
        403
    );
    assert_eq!(server.send(Request::post(&hello).header("X-Toolgate-Lane", "automation")).await.status, 403);
    let claim = json!({ "protocolVersion": "2025-11-25", "_meta": { "toolgate/persona": "researcher" } });
    assert_eq!(server.post(&message(1, "initialize", claim)).await.status, 403);
    assert_eq!(server.send(Request::post(&hello).path("/elsewhere")).await.status, 404);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_the_limit_named() {
    let server = Server::with(|options| options.limits.max_message = 2000).await;
    let reply = server.send(Request::post(&"x".repeat(2001))).await;
    assert_eq!(reply.status, 413);
    assert!(reply.body.contains("2000 bytes"), "{}", reply.body);
}

#[tokio::test]
async fn a_body_that_two_parsers_could_read_differently_reaches_nothing() {
    let server = Server::start().await;
    let id = server.session("alpha", "2025-11-25").await;
    let body = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo","arguments":{"path":"/ok","path":"/etc/passwd"}}}"#;
    let reply = server.send(Request::post(body).session(&id)).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
    assert_eq!(reply.json()["id"], "x");
    assert_eq!(server.send(Request::post("{").session(&id)).await.code(), -32700);
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn types_and_methods_are_checked_leniently_but_checked() {
    let server = Server::start().await;
    let id = server.session("alpha", "2025-11-25").await;
    let body = call(1, "echo").to_string();
    let form = Request::new("POST", &body).session(&id).header("Content-Type", "text/plain");
    assert_eq!(server.send(form).await.status, 415);
    let charset =
        Request::new("POST", &body).session(&id).header("Content-Type", "Application/JSON;charset=UTF-8");
    assert_eq!(server.send(charset).await.status, 200);
    let html = Request::post(&body).session(&id).header("Accept", "text/html");
    assert_eq!(server.send(html).await.status, 406);
    let any = Request::post(&body).session(&id).header("Accept", "*/*;q=0.1");
    assert_eq!(server.send(any).await.status, 200);
    let only_events = Request::post(&body).session(&id).header("Accept", "text/event-stream");
    assert_eq!(server.send(only_events).await.events()[0]["id"], 1);
    assert_eq!(server.send(Request::new("PUT", "{}").session(&id)).await.status, 405);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let server = Server::with(|options| options.max_connections = 1).await;
    let silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let hello = message(1, "initialize", json!({ "protocolVersion": "2025-11-25" }));
    let second = server.post(&hello);
    tokio::pin!(second);
    let early = tokio::time::timeout(std::time::Duration::from_millis(200), &mut second).await;
    assert!(early.is_err(), "served although the only place was taken");
    drop(silent);
    assert_eq!(second.await.status, 200);
}

#[tokio::test]
async fn an_address_that_others_reach_is_not_listened_on_unprotected() {
    struct Nobody;
    #[async_trait::async_trait]
    impl TokenCheck for Nobody {
        async fn check(
            &self,
            _: &str,
        ) -> Result<Option<crate::options::Credential>, crate::options::TokenCheckError> {
            Ok(None)
        }
    }
    let tokens: std::sync::Arc<dyn TokenCheck> = std::sync::Arc::new(Nobody);
    let mut options = HttpOptions::new(([0, 0, 0, 0], 0).into(), tokens);
    let refused = HttpServer::bind(options.clone()).await.err().unwrap();
    assert!(matches!(refused, ServeError::NotLoopback(_)));
    assert!(refused.to_string().contains("serve.behind_proxy"), "{refused}");
    options.behind_proxy = true;
    assert!(matches!(HttpServer::bind(options.clone()).await.err().unwrap(), ServeError::NoAllowedHosts(_)));
    options.allowed_hosts = vec!["mcp.example".into()];
    assert!(HttpServer::bind(options).await.is_ok());
}
