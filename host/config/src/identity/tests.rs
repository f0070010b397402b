use toolgate_base::Secret;

use super::*;

fn with_env(names: &[&str]) -> Server {
    let mut server = Server::stdio("x", "npx", vec!["-y".to_owned(), "pkg".to_owned()]);
    if let Transport::Stdio { env, .. } = &mut server.transport {
        env.extend(names.iter().map(|name| ((*name).to_owned(), Secret::new(name.repeat(2)))));
    }
    server
}

fn with_headers(url: &str, headers: &[(&str, &str)]) -> Server {
    let mut server = Server::http("x", url);
    if let Transport::StreamableHttp { headers: own, .. } = &mut server.transport {
        own.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))));
    }
    server
}

#[test]
fn values_do_not_count_and_names_do() {
    let mut other = with_env(&["TOKEN"]);
    if let Transport::Stdio { env, .. } = &mut other.transport {
        env.insert("TOKEN".to_owned(), Secret::new("rotated"));
    }
    assert_eq!(with_env(&["TOKEN"]).identity(), other.identity());
    assert_ne!(with_env(&["TOKEN"]).identity(), with_env(&["TOKENS"]).identity());
    assert_ne!(with_env(&["TOKEN"]).identity(), with_env(&[]).identity());
    let url = "https://h/mcp";
    assert_eq!(
        with_headers(url, &[("X-A", "1"), ("b", "2")]).identity(),
        with_headers(url, &[("B", "3"), ("x-a", "4")]).identity()
    );
    assert_ne!(with_headers(url, &[("X-A", "1")]).identity(), with_headers(url, &[]).identity());
}

#[test]
fn another_command_argument_directory_or_url_is_another_server() {
    let base = with_env(&[]);
    let mut moved = base.clone();
    if let Transport::Stdio { cwd, .. } = &mut moved.transport {
        *cwd = Some("/elsewhere".into());
    }
    let joined = Server::stdio("x", "npx", vec!["-y pkg".to_owned()]);
    let split = Server::stdio("x", "npx -y", vec!["pkg".to_owned()]);
    let digests: Vec<String> =
        [base, moved, joined, split, with_headers("https://h/mcp", &[]), with_headers("https://h/", &[])]
            .iter()
            .map(|server| server.identity().to_string())
            .collect();
    for (index, digest) in digests.iter().enumerate() {
        assert!(!digests[..index].contains(digest), "{index}");
    }
}

#[test]
fn the_name_of_an_entry_and_the_spelling_of_a_url_do_not_count() {
    let mut renamed = with_env(&[]);
    renamed.name = "other".to_owned();
    assert_eq!(with_env(&[]).identity(), renamed.identity());
    assert_eq!(
        with_headers("https://H:443/mcp", &[]).identity(),
        with_headers("https://h/mcp", &[]).identity()
    );
}

#[test]
fn the_digest_of_a_known_entry_stays() {
    // Pins in every data directory hang on this value; it changes only with a new version in the domain.
    assert_eq!(
        Server::stdio("x", "npx", vec!["-y".to_owned()]).identity().to_string(),
        "sha256:d587d7f64f86f8c03b8bd72a4893bd656434ab08fc92ee5e690b2ab861c7a9ad"
    );
}
