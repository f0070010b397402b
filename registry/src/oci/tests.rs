//! Both kinds of registry, played by a small server; the real one is asked in the end-to-end tests.

use super::*;
use crate::reach::{Credentials, Host};

#[test]
fn a_manifest_says_no_more_than_what_it_holds_and_is_the_same_each_time() {
    let layer = Descriptor::of(WASM, b"component");
    let config = manifest::wasm_config(&layer);
    let one = manifest::component(&config, &layer);
    assert_eq!(one.digest, manifest::component(&config, &layer).digest);
    let read = manifest::read("x", &one.bytes).unwrap();
    assert_eq!(read.only_layer(WASM).unwrap().digest, Digest::of(b"component"));
    assert!(read.only_layer(manifest::DSSE).is_none() && read.subject.is_none());
    let referrer = manifest::release(&one, &[Descriptor::of(manifest::DSSE, b"release")]);
    let read = manifest::read("x", &referrer.bytes).unwrap();
    assert_eq!(read.subject.unwrap().digest, one.digest);
    let index = manifest::index(Vec::new(), &referrer);
    let known = manifest::read("x", &index).unwrap().manifests;
    assert_eq!(known[0].artifact_type.as_deref(), Some(RELEASE));
    assert_eq!(manifest::index(known, &referrer), index, "added once");
}

/// A registry in memory that has the referrers API, wants a token, and keeps its blobs elsewhere.
mod fake {
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper::{Request, Response};
    use hyper_util::rt::TokioIo;

    /// Files by path, and every request line with its `Authorization`.
    #[derive(Default)]
    pub(super) struct State {
        pub(super) files: BTreeMap<String, Bytes>,
        pub(super) asked: Vec<(String, String)>,
        /// Where blobs are sent to; here where it is empty.
        pub(super) elsewhere: String,
        pub(super) realm: String,
    }

    pub(super) type Shared = Arc<Mutex<State>>;

    pub(super) async fn start() -> (SocketAddr, Shared) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Shared::default();
        state.lock().unwrap().realm = format!("http://{address}/token");
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        (address, state)
    }

    async fn answer(state: Shared, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, content) = request.into_parts();
        let content = content.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let header =
            parts.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut state = state.lock().unwrap();
        state.asked.push((format!("{} {path}", parts.method), header.to_owned()));
        let reply = |status: u16, headers: &[(&str, &str)], body: Bytes| {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            Ok(response.body(Full::new(body)).unwrap())
        };
        if path.starts_with("/token") {
            return reply(200, &[], Bytes::from_static(br#"{"token":"t1"}"#));
        }
        if header != "Bearer t1" && !path.starts_with("/elsewhere/") {
            let challenge = format!("Bearer realm=\"{}\",service=\"fake\"", state.realm);
            return reply(401, &[("www-authenticate", &challenge)], Bytes::new());
        }
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        match (parts.method.as_str(), path.as_str()) {
            ("POST", _) => reply(202, &[("location", "/v2/acme/guard/up?x=1")], Bytes::new()),
            ("PUT", path) if path.starts_with("/v2/acme/guard/up?x=1&digest=sha256%3A") => {
                let digest = path.rsplit("%3A").next().unwrap_or_default();
                state.files.insert(format!("/v2/acme/guard/blobs/sha256:{digest}"), content);
                reply(201, &[], Bytes::new())
            }
            ("PUT", _) => {
                let subject = String::from_utf8_lossy(&content).contains("\"subject\"");
                let refers = serde_json::from_slice::<serde_json::Value>(&content).unwrap();
                if let Some(named) = refers["subject"]["digest"].as_str() {
                    let descriptor = serde_json::json!({ "manifests": [{
                        "mediaType": super::manifest::MANIFEST, "digest": name, "size": content.len(),
                        "artifactType": refers["artifactType"],
                    }]});
                    let list = format!("/v2/acme/guard/referrers/{named}");
                    state.files.insert(list, Bytes::from(descriptor.to_string()));
                }
                state.files.insert(path.clone(), content);
                let headers: &[(&str, &str)] = if subject { &[("oci-subject", "yes")] } else { &[] };
                reply(201, headers, Bytes::new())
            }
            ("GET", _) if path.contains("/blobs/") && state.files.contains_key(&path) => {
                let place = format!("{}/elsewhere{path}", state.elsewhere);
                reply(307, &[("location", &place)], Bytes::new())
            }
            _ => {
                let plain = path.trim_start_matches("/elsewhere").split('?').next().unwrap_or_default();
                match state.files.get(plain) {
                    Some(bytes) => reply(200, &[], bytes.clone()),
                    None => reply(404, &[], Bytes::new()),
                }
            }
        }
    }
}

use crate::client::tests::fixture::{ACME, key, release};

/// Somebody with a name and a password there.
fn signing_in(address: std::net::SocketAddr) -> Reach {
    let credentials = Credentials { username: "u".to_owned(), password: toolgate_base::Secret::new("p") };
    Reach::new(vec![Host { host: address.to_string(), credentials: Some(credentials), ..Host::default() }])
}

const SCHEMA_TEXT: &[u8] = br#"{"type":"object"}"#;

fn signed() -> (Vec<u8>, Vec<u8>) {
    let component = b"component".to_vec();
    let mut stated = release("1.0.0", 1);
    stated.settings_schema = Some(Digest::of(SCHEMA_TEXT));
    let envelope = toolgate_signing::sign_release(&stated, &component, &key(ACME));
    (component, envelope)
}

/// As its directory holds it: with the schema of its settings, and a file that the release does not name.
fn plugin(component: &[u8], release: &[u8]) -> Plugin {
    let others = vec![b"something else".to_vec(), SCHEMA_TEXT.to_vec()];
    Plugin { component: component.to_vec(), release: release.to_vec(), others }
}

#[tokio::test]
async fn a_plugin_goes_through_a_registry_with_referrers_tokens_and_redirects_and_comes_back() {
    let (address, state) = fake::start().await;
    let repository = Repository::new(&address.to_string(), "acme/guard", &Reach::default()).unwrap();
    let (component, release) = signed();
    let pushed = repository.push(plugin(&component, &release), Some("1.0.0")).await.unwrap();
    assert!(!pushed.by_fallback_tag);
    let again = repository.push(plugin(&component, &release), None).await.unwrap();
    assert_eq!(again.digest, pushed.digest);
    let fetched = repository.fetch(pushed.digest).await.unwrap();
    assert_eq!((fetched.component, fetched.release), (component, release));
    assert_eq!(fetched.schema.as_deref(), Some(SCHEMA_TEXT), "the schema comes along");
    let asked = state.lock().unwrap().asked.clone();
    assert!(asked.iter().any(|(line, _)| line == "PUT /v2/acme/guard/manifests/1.0.0"));
    // The token is of this registry and this repository.
    assert!(
        asked.iter().any(|(line, _)| line.contains("scope=repository%3Aacme%2Fguard%3Apull")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_token_follows_no_redirect_to_another_server_and_credentials_go_to_no_other_domain() {
    let (address, state) = fake::start().await;
    let (other, there) = fake::start().await;
    let repository = Repository::new(&address.to_string(), "acme/guard", &Reach::default()).unwrap();
    let (component, release) = signed();
    let pushed = repository.push(plugin(&component, &release), None).await.unwrap();
    let files = state.lock().unwrap().files.clone();
    there.lock().unwrap().files = files;
    state.lock().unwrap().elsewhere = format!("http://{other}");
    repository.fetch(pushed.digest).await.unwrap();
    let asked = there.lock().unwrap().asked.clone();
    // The component, its release, and the schema of its settings.
    assert!(asked.len() == 3 && asked.iter().all(|(_, header)| header.is_empty()), "{asked:?}");
    state.lock().unwrap().realm = format!("http://localhost:{}/token", other.port());
    let named = Repository::new(&address.to_string(), "acme/guard", &signing_in(address)).unwrap();
    let error = named.fetch(pushed.digest).await.unwrap_err().to_string();
    assert!(error.contains("no password is sent there"), "{error}");
}

#[tokio::test]
async fn what_is_not_what_was_named_is_refused_at_every_step() {
    let (address, state) = fake::start().await;
    let repository = Repository::new(&address.to_string(), "acme/guard", &Reach::default()).unwrap();
    let (component, release) = signed();
    let pushed = repository.push(plugin(&component, &release), None).await.unwrap();
    let good = state.lock().unwrap().files.clone();
    let code = async |change: &dyn Fn(&mut fake::State)| {
        state.lock().unwrap().files = good.clone();
        change(&mut state.lock().unwrap());
        repository.fetch(pushed.digest).await.unwrap_err().code()
    };
    let manifest = format!("/v2/acme/guard/manifests/{}", pushed.digest);
    let referrers = format!("/v2/acme/guard/referrers/{}", pushed.digest);
    let blob = format!("/v2/acme/guard/blobs/{}", Digest::of(b"component"));
    assert_eq!(code(&|state| drop(state.files.insert(manifest.clone(), "{}".into()))).await, "digest");
    assert_eq!(code(&|state| drop(state.files.insert(blob.clone(), "componend".into()))).await, "digest");
    assert_eq!(code(&|state| drop(state.files.insert(blob.clone(), "components".into()))).await, "too-large");
    assert_eq!(code(&|state| drop(state.files.remove(&referrers))).await, "absent");
    assert_eq!(code(&|state| drop(state.files.remove(&manifest))).await, "absent");
    let schema = format!("/v2/acme/guard/blobs/{}", Digest::of(SCHEMA_TEXT));
    assert_eq!(
        code(&|state| drop(state.files.insert(schema.clone(), r#"{"type":"string"}"#.into()))).await,
        "digest"
    );
    assert_eq!(
        code(&|state| drop(state.files.insert(schema.clone(), r#"{"type":"objecT"}"#.into()))).await,
        "digest"
    );
    // A component that is listed as its own release.
    let own = serde_json::json!({ "manifests": [{
        "mediaType": manifest::MANIFEST, "digest": pushed.digest, "size": 1, "artifactType": RELEASE,
    }]});
    let own = own.to_string();
    assert_eq!(
        code(&|state| drop(state.files.insert(referrers.clone(), own.clone().into()))).await,
        "malformed"
    );
}

#[tokio::test]
async fn a_redirect_and_a_token_service_beside_this_machine_are_not_dialled() {
    let (address, state) = fake::start().await;
    let repository = Repository::new(&address.to_string(), "acme/guard", &Reach::default()).unwrap();
    let (component, release) = signed();
    let pushed = repository.push(plugin(&component, &release), None).await.unwrap();
    for place in ["https://10.1.2.3", "https://169.254.169.254", "https://[fd00::1]"] {
        state.lock().unwrap().elsewhere = place.to_owned();
        assert_eq!(repository.fetch(pushed.digest).await.unwrap_err().code(), "not-dialled", "{place}");
    }
    state.lock().unwrap().realm = "https://10.1.2.3/token".to_owned();
    let other = Repository::new(&address.to_string(), "acme/guard", &Reach::default()).unwrap();
    assert_eq!(other.fetch(pushed.digest).await.unwrap_err().code(), "not-dialled");
}
