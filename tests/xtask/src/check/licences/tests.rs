//! SPDX expressions.

use super::allowed;

#[test]
fn one_allowed_branch_of_an_or_suffices_and_an_and_needs_all() {
    assert!(allowed("MIT OR GPL-3.0-only"));
    assert!(allowed("MIT/Apache-2.0"));
    assert!(allowed("Apache-2.0 AND ISC"));
    assert!(!allowed("MIT AND GPL-3.0-only"));
    assert!(!allowed("GPL-3.0-only"));
}

#[test]
fn and_binds_more_than_or_and_parentheses_decide() {
    assert!(allowed("MIT OR GPL-3.0-only AND GPL-2.0-only"));
    assert!(!allowed("(MIT OR GPL-3.0-only) AND GPL-2.0-only"));
    assert!(allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
}

#[test]
fn an_exception_counts_with_its_licence_only() {
    assert!(allowed("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"));
    assert!(!allowed("MIT WITH LLVM-exception"));
}

#[test]
fn what_is_no_expression_is_not_allowed() {
    for odd in ["", "OR", "MIT MIT", "(MIT", "MIT)", "MIT AND"] {
        assert!(!allowed(odd), "{odd}");
    }
}
