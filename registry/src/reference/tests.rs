use proptest::prelude::*;
use toolgate_signing::sign_release;

use super::*;
use crate::client::tests::fixture::{ACME, key, release};

const HEX: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn each_way_to_write_a_plugin_is_read_as_what_it_is() {
    let parse = |text: &str| Reference::parse(text).unwrap();
    assert_eq!(
        parse("acme/guard"),
        Reference::Registry { name: "acme/guard".to_owned(), range: VersionReq::STAR }
    );
    assert!(
        matches!(parse("acme/guard@^1.2"), Reference::Registry { range, .. } if range == "^1.2".parse().unwrap())
    );
    assert!(matches!(parse("./guard"), Reference::Directory(_)));
    assert!(matches!(parse("/srv/guard"), Reference::Directory(_)));
    assert!(matches!(parse("https://x.example/a/release.dsse.json"), Reference::Release(_)));
    let oci = parse(&format!("oci://r.example:5000/acme/guard@{HEX}"));
    assert!(
        matches!(&oci, Reference::Oci { host, repository, .. } if host == "r.example:5000" && repository == "acme/guard")
    );
    assert_eq!(oci.to_string(), format!("oci://r.example:5000/acme/guard@{HEX}"));
}

#[test]
fn what_pins_nothing_or_leads_elsewhere_is_no_reference() {
    for bad in [
        "",
        "guard",
        "acme/guard@",
        "acme/guard@latest",
        "Acme/guard",
        "acme/guard/x",
        "~x/y",
        "oci://r.example/acme/guard",
        "oci://r.example/acme/guard:1.0",
        "oci://r.example/../x@sha256:00",
        &format!("oci://r.example/a//b@{HEX}"),
        &format!("oci://r.example/A@{HEX}"),
        &format!("oci://u:p@r.example/a@{HEX}"),
        "https://x.example/component.wasm",
        "http://x.example/release.dsse.json",
        "file:///a/release.dsse.json",
        "https://u:p@x.example/release.dsse.json",
    ] {
        let parsed = Reference::parse(bad);
        assert!(parsed.is_err(), "{bad}: {parsed:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_reads_again(text in "\\PC{0,60}|(oci://|https://|acme/)[a-z0-9@:./^*-]{0,40}") {
        if let Ok(reference) = Reference::parse(&text) {
            prop_assert_eq!(Reference::parse(&reference.to_string()).unwrap(), reference);
        }
    }
}

#[tokio::test]
async fn a_directory_gives_both_files_only_if_they_belong_together() {
    let directory = tempfile::tempdir().unwrap();
    let signed = sign_release(&release("1.0.0", 1), b"component", &key(ACME));
    std::fs::write(directory.path().join("component.wasm"), b"component").unwrap();
    std::fs::write(directory.path().join("release.dsse.json"), &signed).unwrap();
    let reference = Reference::Directory(PathBuf::from("."));
    let fetched = reference.fetch(directory.path(), &Reach::default()).await.unwrap();
    assert_eq!((fetched.component, fetched.release), (b"component".to_vec(), signed));
    std::fs::write(directory.path().join("component.wasm"), b"componend").unwrap();
    assert_eq!(reference.fetch(directory.path(), &Reach::default()).await.unwrap_err().code(), "digest");
    std::fs::remove_file(directory.path().join("component.wasm")).unwrap();
    assert_eq!(reference.fetch(directory.path(), &Reach::default()).await.unwrap_err().code(), "reference");
}

#[test]
fn a_plugin_is_pushed_to_a_repository_with_a_tag_or_without() {
    let target = |text: &str| push_target(text);
    let of = |host: &str, name: &str, tag: Option<&str>| {
        Some((host.to_owned(), name.to_owned(), tag.map(str::to_owned)))
    };
    assert_eq!(target("oci://r.example:5000/acme/guard"), of("r.example:5000", "acme/guard", None));
    assert_eq!(target("oci://r.example/acme/guard:1.0"), of("r.example", "acme/guard", Some("1.0")));
    for bad in [
        "r.example/acme",
        "oci://r.example",
        "oci://r.example/acme:",
        "oci://r.example/Acme",
        "oci://r.example/a:b c",
    ] {
        assert_eq!(target(bad), None, "{bad}");
    }
}
