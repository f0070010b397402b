//! The form of the digest, and the parsing of a lock file.

use std::collections::BTreeMap;

use super::{checksums, over};

fn entries(list: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    list.iter().map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec())).collect()
}

#[test]
fn moving_a_byte_between_files_or_into_a_name_changes_the_digest() {
    let one = over(&entries(&[("a", "bc"), ("d", "e")]));
    for other in [
        entries(&[("a", "b"), ("d", "ce")]),
        entries(&[("ab", "c"), ("d", "e")]),
        entries(&[("a", "bc")]),
        entries(&[("a", "bc"), ("d", "f")]),
    ] {
        assert_ne!(one, over(&other));
    }
}

#[test]
fn the_same_files_give_the_same_digest_whatever_their_order() {
    assert_eq!(over(&entries(&[("a", "1"), ("b", "2")])), over(&entries(&[("b", "2"), ("a", "1")])));
}

#[test]
fn checksums_are_found_by_name_and_version_and_path_packages_have_none() {
    let lock = "version = 4\n\n[[package]]\nname = \"one\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\
                checksum = \"aa\"\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
    let found = checksums(lock);
    assert_eq!(found.len(), 1);
    assert_eq!(found[&("one".to_owned(), "1.0.0".to_owned())], "aa");
}
