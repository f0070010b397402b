//! Which arguments are paths, and what becomes of them.

use toolgate_sdk::Error;
use toolgate_sdk::adapter::Change;

use super::{Filesystem, names_a_path};

fn adapter() -> Filesystem {
    Filesystem::new(vec!["/work".to_owned(), "/data".to_owned()]).unwrap()
}

/// A stand-in for the host: enough of its reading for these paths.
fn within(path: &str) -> Result<Option<String>, Error> {
    Ok(match path {
        "notes.txt" | "./notes.txt" | "/work/sub/../notes.txt" | "/work/notes.txt" => {
            Some("/work/notes.txt".to_owned())
        }
        "quo\"te" => Some("/work/quo\"te".to_owned()),
        "\0" => return Err(Error::Invalid("a NUL".to_owned())),
        _ => None,
    })
}

fn correct(paths: &[(&str, &str)]) -> Change {
    let paths = paths.iter().map(|(at, path)| ((*at).to_owned(), (*path).to_owned())).collect();
    adapter().correct(paths, within)
}

#[test]
fn the_four_names_and_every_name_that_ends_with_path_are_paths() {
    for pointer in [
        "/path",
        "/paths/0",
        "/source",
        "/destination",
        "/repo_path",
        "/filePath",
        "/PATHS/3",
        "/edits/0/path",
        "/batch/2/target_path/0",
    ] {
        assert!(names_a_path(pointer), "{pointer}");
    }
    for pointer in ["", "/", "/content", "/pathology", "/edits/0/text", "/pattern", "/sources"] {
        assert!(!names_a_path(pointer), "{pointer}");
    }
}

#[test]
fn a_path_in_normal_form_is_left_alone() {
    assert!(matches!(correct(&[("/path", "/work/notes.txt")]), Change::Unchanged));
    assert!(matches!(correct(&[]), Change::Unchanged));
}

#[test]
fn relative_and_crooked_paths_become_absolute_and_normal() {
    let Change::Patch(edits) =
        correct(&[("/paths/0", "./notes.txt"), ("/paths/1", "/work/sub/../notes.txt")])
    else {
        panic!("must patch");
    };
    let edits: Vec<_> = edits.iter().map(|edit| (edit.pointer.as_str(), edit.value.as_deref())).collect();
    let normal = Some("\"/work/notes.txt\"");
    assert_eq!(edits, [("/paths/0", normal), ("/paths/1", normal)]);
}

#[test]
fn a_new_value_is_json_text_whatever_the_name_holds() {
    let Change::Patch(edits) = correct(&[("/path", "quo\"te")]) else {
        panic!("must patch");
    };
    assert_eq!(edits[0].value.as_deref(), Some(r#""/work/quo\"te""#));
}

#[test]
fn one_path_outside_fails_the_whole_call_and_names_the_roots() {
    let Change::Fail(text) = correct(&[("/source", "notes.txt"), ("/destination", "../../etc/passwd")])
    else {
        panic!("must fail");
    };
    for part in ["`../../etc/passwd`", "`/work`", "`/data`"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn a_path_that_the_host_cannot_read_fails_the_call() {
    assert!(matches!(correct(&[("/path", "\0")]), Change::Fail(_)));
}

#[test]
fn settings_without_roots_or_with_a_relative_root_are_refused() {
    assert!(Filesystem::new(Vec::new()).is_err());
    assert!(Filesystem::new(vec!["work".to_owned()]).is_err());
}
