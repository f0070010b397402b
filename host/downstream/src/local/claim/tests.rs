use super::*;

fn holder(manner: Manner) -> Holder {
    Holder { pid: std::process::id(), manner, version: "1".to_owned(), config: None }
}

#[test]
fn a_directory_has_one_holder_and_is_free_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let first = Claim::take(&data, &holder(Manner::Shared), Duration::ZERO).unwrap();
    let error = Claim::take(&data, &holder(Manner::Http), Duration::ZERO).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&std::process::id().to_string()) && text.contains("over stdio"), "{text}");
    drop(first);
    assert!(Claim::take(&data, &holder(Manner::Http), Duration::ZERO).is_ok());
}

#[test]
fn one_that_serves_alone_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let _first = Claim::take(dir.path(), &holder(Manner::Alone), Duration::ZERO).unwrap();
    let from = Instant::now();
    let error = Claim::take(dir.path(), &holder(Manner::Shared), Duration::from_mins(1)).unwrap_err();
    assert!(from.elapsed() < Duration::from_secs(10));
    assert!(error.to_string().contains("--no-share"), "{error}");
}
