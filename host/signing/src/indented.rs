//! JSON with one value on each line and the text of every number and string as it was: a reader sees a
//! changed word as a changed line, and the digest of what is read back is the same.

/// Canonical JSON, indented by two spaces a level. Only white space is added; other JSON stays readable too.
pub fn indented(canonical: &str) -> String {
    let mut out = String::with_capacity(canonical.len().saturating_mul(2));
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut previous = ' ';
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    for character in canonical.chars() {
        if in_string {
            out.push(character);
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            previous = character;
            continue;
        }
        match character {
            '"' => {
                if matches!(previous, '{' | '[') {
                    line(&mut out, depth);
                }
                in_string = true;
                out.push(character);
            }
            '{' | '[' => {
                if matches!(previous, '{' | '[') {
                    line(&mut out, depth);
                }
                depth = depth.saturating_add(1);
                out.push(character);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !matches!(previous, '{' | '[') {
                    line(&mut out, depth);
                }
                out.push(character);
            }
            ',' => {
                out.push(character);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                if matches!(previous, '{' | '[') {
                    line(&mut out, depth);
                }
                out.push(character);
            }
        }
        previous = character;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn only_white_space_is_added_and_each_value_has_its_line() {
        let canonical = r#"{"a":[1,{"b":"x, y: {\"z\"} \\"}],"c":{},"d":[],"e":12345678901234567890}"#;
        let text = indented(canonical);
        assert_eq!(crate::canonical_json(&text).unwrap(), canonical);
        assert!(text.contains("\n  \"c\": {},\n"), "{text}");
        assert!(text.contains("\n    1,\n    {\n      \"b\": "), "{text}");
        assert!(text.contains("12345678901234567890"), "{text}");
    }
}
