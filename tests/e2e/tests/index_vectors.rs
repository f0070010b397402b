//! The published attacks on an index (`registry/vectors`), on the built binary: each visit on its day, each
//! ending with the reason that stands in the vector, and nothing installed that was refused.

use serde_json::Value;
use toolgate_base::clock::utc_ms;
use toolgate_signing::SigningKey;

use crate::preload;
use crate::registry::ACME;
use crate::sandbox;

/// Bytes of a file as a vector holds them.
fn bytes(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    text.strip_prefix("base64:").map_or_else(|| text.as_bytes().to_vec(), decode)
}

/// Plays one vector; how many of its visits were refused.
fn play(name: &str, vector: &Value) -> usize {
    let sandbox = sandbox();
    let clock = preload::library(&sandbox, "clock", preload::CLOCK);
    let (index, root) = (sandbox.path("index").display().to_string(), vector["root"].as_str().unwrap());
    let key = SigningKey::from_seed(&ACME).public();
    std::fs::create_dir_all(&index).unwrap();
    sandbox.configure(&format!(
        "plugins:\n  indexes: [{{ name: acme, url: {index:?}, root: {root:?} }}]\n  trust:\n    - {{ plugins: \"acme/*\", keys: [\"{key}\"], index: acme }}\n"
    ));
    let mut refused = 0;
    for (number, visit) in vector["visits"].as_array().unwrap().iter().enumerate() {
        for (path, text) in visit["files"].as_object().unwrap() {
            match text.as_str() {
                Some(text) => drop(sandbox.write(&format!("index/{path}"), bytes(text))),
                None => std::fs::remove_file(sandbox.path("index").join(path)).unwrap(),
            }
        }
        let at = (utc_ms(visit["at"].as_str().unwrap()).unwrap() / 1000).to_string();
        let day = [("LD_PRELOAD", clock.as_str()), ("CLOCK_AT", at.as_str())];
        let run = sandbox.run_with(&["plugin", "search", "--json"], "", &day);
        let found = run.json();
        let code = found["unasked"][0]["code"].as_str().unwrap_or("ok");
        let (refresh, version) = (visit["refresh"].as_str().unwrap(), visit["resolve"].as_str().unwrap());
        // A search looks into the plugins as well, and meets there what a look for one of them meets.
        let met = code == refresh || (refresh == "ok" && code == version);
        assert!(met, "{name}, visit {number}: {refresh} and not {code}: {run:?}");
        assert_eq!(run.code, if code == "ok" { 0 } else { 5 }, "{name}, visit {number}: {run:?}");
        refused += usize::from(code != "ok");
        if !version.starts_with(|first: char| first.is_ascii_digit()) {
            let run = sandbox.run_with(&["plugin", "install", "acme/guard", "--yes"], "", &day);
            assert!([1, 5].contains(&run.code), "{name}, visit {number}: {run:?}");
            let told = refresh != "ok" || version != "revoked" || run.stderr.contains("revoked");
            assert!(told, "{name}, visit {number}: {run:?}");
            assert!(!sandbox.data().join("plugins.d/acme.guard.toml").exists(), "{name}, visit {number}");
            refused += usize::from(code == "ok");
        }
    }
    refused
}

#[test]
fn every_attack_on_an_index_is_refused_by_the_binary_with_its_own_reason() {
    let directory = format!("{}/../../registry/vectors", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (mut played, mut refused) = (0, 0);
    for path in names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let vector: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        refused += play(&name, &vector);
        played += 1;
    }
    assert!(played > 30 && refused > 25, "{played} vectors, {refused} visits refused");
}
