//! What is open in a rehearsal.

use toolgate_grants::{FilesGrant, Grants, KvGrant};
use toolgate_signing::{
    Access, Capabilities, FilesCapability, HttpCapability, Kind, KvCapability, SecretCapability,
};

use super::{Memory, confined};
use crate::ports::{KvExpected, KvOutcome, KvSpace, KvStore as _, KvWrite};
use crate::tests::guests::release;

fn capabilities() -> Capabilities {
    let files = |settings: Option<&str>| FilesCapability {
        access: Access::Write,
        settings: settings.map(str::to_owned),
    };
    Capabilities {
        http: [(
            "api".to_owned(),
            HttpCapability {
                hosts: vec!["https://api.example.com".to_owned()],
                methods: vec!["get".to_owned()],
                max_response: None,
            },
        )]
        .into(),
        kv: [("seen".to_owned(), KvCapability { max_bytes: 100 })].into(),
        secrets: [(
            "token".to_owned(),
            SecretCapability { purpose: "test".to_owned(), send_to: Vec::new(), reveal: true },
        )]
        .into(),
        files: [("work".to_owned(), files(None)), ("roots".to_owned(), files(Some("/roots")))].into(),
        ..Capabilities::default()
    }
}

#[test]
fn hosts_secrets_and_writing_are_closed_whatever_was_granted() {
    let mut stated = release(Kind::Policy, b"");
    stated.capabilities = capabilities();
    stated.settings_hosts = vec!["/mirror".to_owned()];
    let granted = Grants {
        kv: [("seen".to_owned(), KvGrant { max_bytes: Some(10) })].into(),
        files: [(
            "work".to_owned(),
            FilesGrant { directories: vec!["/srv".into()], access: Some(Access::Write) },
        )]
        .into(),
        ..Grants::declared(&stated)
    };
    let (release, grants) = confined(&stated, &granted);
    assert!(release.settings_hosts.is_empty(), "settings open no host");
    assert!(release.capabilities.files.values().all(|label| label.access == Access::Read));
    assert_eq!(grants.http["api"].hosts, Some(Vec::new()));
    assert!(grants.secrets["token"].value.is_empty());
    assert_eq!(grants.kv["seen"].max_bytes, Some(10));
    assert_eq!(grants.files["work"].directories, [std::path::PathBuf::from("/srv")]);
    assert_eq!(grants.files["work"].access, None, "what the release declares, which is reading now");
}

#[test]
fn directories_of_the_settings_count_where_nobody_names_any() {
    let mut stated = release(Kind::Policy, b"");
    stated.capabilities = capabilities();
    let (_, grants) = confined(&stated, &Grants::default());
    assert!(!grants.files.contains_key("roots"), "its label is opened by the settings");
    assert!(grants.files["work"].directories.is_empty());
}

#[test]
fn the_memory_keeps_versions_quotas_and_spaces_apart() {
    let memory = Memory::default();
    let space = |owner: &str| KvSpace {
        plugin: "acme/guard".to_owned(),
        label: "seen".to_owned(),
        scope: "session",
        owner: owner.to_owned(),
    };
    let write = |value: &'static [u8], expected| KvWrite { value, ttl: None, expected, quota: 8 };
    let one = space("one");
    assert_eq!(memory.write(&one, "a", &write(b"x", KvExpected::Absent)), Ok(KvOutcome::Written(1)));
    assert!(matches!(
        memory.write(&one, "a", &write(b"y", KvExpected::Absent)),
        Ok(KvOutcome::Conflict(Some(_)))
    ));
    assert!(matches!(
        memory.write(&one, "a", &write(b"y", KvExpected::Version(7))),
        Ok(KvOutcome::Conflict(Some(_)))
    ));
    assert_eq!(memory.write(&one, "a", &write(b"y", KvExpected::Version(1))), Ok(KvOutcome::Written(2)));
    assert_eq!(memory.write(&one, "b", &write(b"1234567", KvExpected::Anything)), Ok(KvOutcome::Full(2)));
    assert_eq!(memory.get(&space("two"), "a"), Ok(None));
    assert_eq!(memory.keys(&one, "", "", 10), Ok(vec!["a".to_owned()]));
    assert_eq!(memory.keys(&one, "", "a", 10), Ok(Vec::new()));
    assert_eq!(memory.delete(&one, "a"), Ok(true));
    assert_eq!(memory.delete(&one, "a"), Ok(false));
}
