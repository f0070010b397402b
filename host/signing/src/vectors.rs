//! Replays the published vectors in `host/signing/vectors`, which another implementation wrote.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{
    DefinitionKind, Digest, KeyId, PAYLOAD_TYPE, PublicKey, Release, SigningKey, Threshold, canonical_json,
    definition_digest, pre_authentication_encoding, sign_release, surface_digest, verify_release,
};

/// The parts that every file of vectors has.
#[derive(Deserialize)]
struct Vectors<A, R> {
    accepted: Vec<A>,
    refused: Vec<R>,
}

fn read<T: DeserializeOwned>(file: &str) -> T {
    let path = format!("{}/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn canonical_json_is_what_the_vectors_say() {
    #[derive(Deserialize)]
    struct Accepted {
        name: String,
        input: String,
        canonical: String,
    }
    #[derive(Deserialize)]
    struct Refused {
        name: String,
        input: String,
        reason: String,
    }
    let vectors: Vectors<Accepted, Refused> = read("canonical");
    for vector in vectors.accepted {
        assert_eq!(canonical_json(&vector.input).as_ref(), Ok(&vector.canonical), "{}", vector.name);
        assert_eq!(canonical_json(&vector.canonical), Ok(vector.canonical), "{}: again", vector.name);
    }
    for vector in vectors.refused {
        let error = canonical_json(&vector.input).unwrap_err();
        assert_eq!(error.code(), vector.reason, "{}: {error}", vector.name);
    }
}

#[test]
fn definition_and_surface_digests_are_what_the_vectors_say_pi_01_pi_02() {
    #[derive(Deserialize)]
    struct Definition {
        name: String,
        kind: String,
        input: String,
        normalised: String,
        digest: Digest,
    }
    #[derive(Deserialize)]
    struct Surface {
        name: String,
        definitions: Vec<(DefinitionKind, String, Digest)>,
        digest: Digest,
    }
    #[derive(Deserialize)]
    struct Definitions {
        same: Vec<Definition>,
        different: Vec<Definition>,
        others: Vec<Definition>,
        surfaces: Vec<Surface>,
    }
    let vectors: Definitions = read("definitions");
    for vector in vectors.same.iter().chain(&vectors.different).chain(&vectors.others) {
        let kind: DefinitionKind = vector.kind.parse().unwrap();
        assert_eq!(definition_digest(kind, &vector.input), Ok(vector.digest), "{}", vector.name);
        assert_eq!(definition_digest(kind, &vector.normalised), Ok(vector.digest), "{}: again", vector.name);
    }
    let mut digests: Vec<Digest> = vectors.different.iter().map(|vector| vector.digest).collect();
    digests.push(vectors.same[0].digest);
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), vectors.different.len() + 1, "every change is seen");
    assert!(vectors.same.iter().all(|vector| vector.digest == vectors.same[0].digest));
    for vector in vectors.surfaces {
        assert_eq!(surface_digest(&vector.definitions), vector.digest, "{}", vector.name);
    }
}

#[test]
fn keys_are_admitted_and_refused_as_the_vectors_say() {
    #[derive(Deserialize)]
    struct Accepted {
        seed: String,
        key: String,
        id: String,
    }
    #[derive(Deserialize)]
    struct Refused {
        name: String,
        key: String,
        reason: String,
    }
    let vectors: Vectors<Accepted, Refused> = read("keys");
    for vector in vectors.accepted {
        let key = PublicKey::parse(&vector.key).unwrap();
        assert_eq!(key.id().as_str(), vector.id);
        assert_eq!(key.to_string(), vector.key);
        assert_eq!(SigningKey::from_hex(&vector.seed).unwrap().public(), key);
    }
    for vector in vectors.refused {
        let error = PublicKey::parse(&vector.key).unwrap_err();
        assert_eq!(error.code(), vector.reason, "{}: {error}", vector.name);
    }
}

#[derive(Deserialize)]
struct Rule {
    keys: Vec<PublicKey>,
    minimum: u32,
}

impl Rule {
    fn threshold(&self) -> Option<Threshold> {
        let there = !self.keys.is_empty();
        there.then(|| Threshold { keys: self.keys.clone(), minimum: self.minimum })
    }
}

#[derive(Deserialize)]
struct AcceptedRelease {
    name: String,
    envelope: String,
    rule: Rule,
    signers: Vec<String>,
    digest: Digest,
}

#[derive(Deserialize)]
struct RefusedRelease {
    name: String,
    envelope: String,
    rule: Rule,
    reason: String,
}

#[derive(Deserialize)]
struct Releases {
    component: String,
    seed: String,
    release: Release,
    statement: String,
    pae: String,
    accepted: Vec<AcceptedRelease>,
    refused: Vec<RefusedRelease>,
}

#[test]
fn releases_that_the_vectors_accept_are_verified() {
    let vectors: Releases = read("releases");
    let component = STANDARD.decode(&vectors.component).unwrap();
    for vector in &vectors.accepted {
        let verified = verify_release(vector.envelope.as_bytes(), &|name| {
            assert_eq!(name, "acme/github-guard");
            vector.rule.threshold()
        });
        let verified = verified.unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        assert_eq!(verified.release(), &vectors.release, "{}", vector.name);
        assert_eq!(verified.digest(), vector.digest, "{}", vector.name);
        let signers: Vec<&str> = verified.signers().iter().map(KeyId::as_str).collect();
        assert_eq!(signers, vector.signers, "{}", vector.name);
        assert_eq!(verified.check_component(&component), Ok(()));
        assert_eq!(verified.check_component(b"other").unwrap_err().code(), "component");
    }
}

#[test]
fn releases_that_the_vectors_refuse_are_refused_for_that_reason() {
    let vectors: Releases = read("releases");
    assert!(vectors.refused.len() > 80);
    for vector in &vectors.refused {
        match verify_release(vector.envelope.as_bytes(), &|_| vector.rule.threshold()) {
            Ok(_) => panic!("{} was accepted", vector.name),
            Err(error) => assert_eq!(error.code(), vector.reason, "{}: {error}", vector.name),
        }
    }
}

#[test]
fn signing_gives_the_bytes_of_the_vectors() {
    let vectors: Releases = read("releases");
    let component = STANDARD.decode(&vectors.component).unwrap();
    let key = SigningKey::from_hex(&vectors.seed).unwrap();
    let signed = sign_release(&vectors.release, &component, &key);
    assert_eq!(String::from_utf8(signed).unwrap(), vectors.accepted[0].envelope);
    let encoded = pre_authentication_encoding(PAYLOAD_TYPE, vectors.statement.as_bytes());
    assert_eq!(STANDARD.encode(encoded), vectors.pae);
}
