use super::*;

#[test]
fn forms_are_told_apart() {
    assert!(matches!(inspect(b""), Err(LoadErrorKind::Empty)));
    assert!(matches!(inspect(b"\x7fELF"), Err(LoadErrorKind::NativeCode)));
    assert!(matches!(inspect(b"\0asm\x01\0\0\0"), Err(LoadErrorKind::CoreModule)));
    assert!(matches!(inspect(b"hello"), Err(LoadErrorKind::NotWasm)));
    assert_eq!(inspect(b"\0asm\x0d\0\x01\0").unwrap(), Inspection::default());
}

#[test]
fn only_the_outer_shape_counts() {
    let bytes = wat::parse_str(
        r#"(component
             (component $inner (import "acme:inner/thing@1.0.0" (instance)) (export "e" (instance 0)))
             (import "toolgate:plugin/types@0.1.0" (instance))
             (import "b:b/b@1.0.0" (instance)) (import "a:a/a@1.0.0" (instance)))"#,
    )
    .unwrap();
    let found = inspect(&bytes).unwrap();
    assert_eq!(found.imports, ["a:a/a@1.0.0", "b:b/b@1.0.0"]);
    assert!(found.exports.is_empty());
}

#[test]
fn features_that_the_engine_does_not_have_do_not_validate() {
    for module in ["(memory i64 1)", "(memory 1 1 shared)", "(memory 1) (memory 1)"] {
        let bytes = wat::parse_str(format!("(component (core module {module}))")).unwrap();
        assert!(matches!(inspect(&bytes), Err(LoadErrorKind::Malformed(_))), "{module}");
    }
}
