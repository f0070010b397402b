use super::*;

fn standing() -> Standing {
    Standing {
        version: "1.2.3".to_owned(),
        build: "/bin/a".to_owned(),
        config: Some("/etc/a.yaml".into()),
        locked: false,
    }
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: "1.2.3".to_owned(),
        build: Some("/bin/b".to_owned()),
        config: Some("/etc/a.yaml".into()),
        locked: false,
        variables: BTreeMap::new(),
        want: Want::Session {
            persona: "default".to_owned(),
            lane: "main".to_owned(),
            server: None,
            servers: None,
        },
    }
}

#[test]
fn a_client_that_differs_in_anything_is_refused_with_both_sides() {
    assert!(standing().agrees(&hello()).is_ok());
    let other = |change: &dyn Fn(&mut Hello)| {
        let mut hello = hello();
        change(&mut hello);
        standing().agrees(&hello).unwrap_err().message
    };
    let version = other(&|hello| hello.version = "9.9.9".to_owned());
    assert!(version.contains("1.2.3") && version.contains("9.9.9"), "{version}");
    let config = other(&|hello| hello.config = None);
    assert!(config.contains("/etc/a.yaml") && config.contains("no configuration file"), "{config}");
    let locked = other(&|hello| hello.locked = true);
    assert!(locked.contains("with --locked") && locked.contains("without --locked"), "{locked}");
    let protocol = other(&|hello| hello.protocol = PROTOCOL + 1);
    let (ours, theirs) = (format!("protocol {PROTOCOL} "), format!("protocol {})", PROTOCOL + 1));
    for part in ["/bin/a", "/bin/b", &ours, &theirs] {
        assert!(protocol.contains(part), "{part}: {protocol}");
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_or_breaks_off_is_none() {
    let read = async |bytes: &[u8], longest| {
        let mut from = bytes;
        read_line::<serde_json::Value>(&mut from, longest).await
    };
    assert!(read(b"{\"a\":1}\n", 100).await.unwrap().is_some());
    assert!(read(b"{\"a\":1}", 100).await.unwrap().is_none());
    assert!(read(b"{\"a\":1}\n", 4).await.unwrap().is_none());
    let error = read(b"{\"secret\":nonsense}\n", 100).await.unwrap_err();
    assert!(!error.to_string().contains("nonsense"), "{error}");
}
