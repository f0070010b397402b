use super::Secret;

#[test]
fn a_secret_prints_as_three_stars_however_it_is_printed_se_12() {
    #[derive(Debug)]
    struct Holder {
        #[expect(dead_code, reason = "only its Debug output is looked at")]
        token: Secret,
    }
    let secret = Secret::new("sk-9f");
    assert_eq!(format!("{secret}"), "***");
    assert_eq!(format!("{secret:?} {secret:#?}"), "*** ***");
    let holder = format!("{:?}", Holder { token: secret.clone() });
    assert!(!holder.contains("sk-"), "{holder}");
    assert_eq!(secret.expose(), "sk-9f");
}

#[test]
fn comparing_tells_equal_from_prefix_and_from_different() {
    let secret = Secret::new("token");
    assert!(secret.matches("token"));
    assert!(!secret.matches("toke"));
    assert!(!secret.matches("tokens"));
    assert!(!secret.matches("tokem"));
    assert!(!secret.matches(""));
    assert_eq!(secret, Secret::from("token"));
    assert_ne!(secret, Secret::default());
    assert!(Secret::default().is_empty());
}
