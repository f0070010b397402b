use super::{Manifest, ManifestError};
use crate::tests::guests::{call_policy, says};

const TEXT: &str = "manifest = 1\nname = \"acme/guard\"\nversion = \"1.2.3\"\nsequence = 4\nkind = \"policy\"\ndecisions = [\"deny\", \"ask\"]\nmin-host = \"0.1.0\"\n";

fn place(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plugin.toml"), text).unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/lib.rs"), "code").unwrap();
    dir
}

#[test]
fn a_statement_has_what_the_binary_imports_and_exports_and_not_what_anybody_says() {
    let dir = place(&format!(
        "{TEXT}sources = [\"src\"]\n[capabilities.http.api]\nhosts = [\"https://a.example\"]\nmethods = [\"get\"]\nmax-response = 10\n"
    ));
    let manifest = Manifest::read(dir.path()).unwrap();
    let release = manifest.release(&call_policy(&says(3)), "2026-11-29T12:00:00Z").unwrap();
    assert_eq!(release.decisions, ["ask", "deny"], "sets are sorted");
    assert_eq!(release.exports, ["toolgate:plugin/call-hook@0.1.0"]);
    assert!(release.imports.iter().any(|import| import.starts_with("toolgate:plugin/requests@")));
    assert_eq!(release.world, "toolgate:plugin/policy@0.1.0");
    assert_eq!(release.capabilities.http["api"].max_response, Some(10));
    let before = release.sources.unwrap();
    std::fs::write(dir.path().join("src/lib.rs"), "other code").unwrap();
    assert_ne!(manifest.sources().unwrap().unwrap(), before);
}

#[test]
fn a_manifest_with_an_unknown_key_or_a_path_out_of_its_directory_is_refused() {
    let unknown = place(&format!("{TEXT}trusted = true\n"));
    let refused = Manifest::read(unknown.path()).unwrap_err().to_string();
    assert!(refused.contains("trusted") && refused.contains("line 8"), "{refused}");
    let outside = place(&format!("{TEXT}sources = [\"../other\"]\n"));
    let manifest = Manifest::read(outside.path()).unwrap();
    assert!(matches!(manifest.sources(), Err(ManifestError::Outside(_))));
    let newer = place(&TEXT.replace("manifest = 1", "manifest = 2"));
    assert!(matches!(Manifest::read(newer.path()), Err(ManifestError::Format { found: 2 })));
}

#[test]
fn a_core_module_gets_no_statement() {
    let dir = place(TEXT);
    let manifest = Manifest::read(dir.path()).unwrap();
    let refused = manifest.release(b"\0asm\x01\0\0\0", "2026-11-29T12:00:00Z");
    assert!(matches!(refused, Err(ManifestError::Component(_))));
}
