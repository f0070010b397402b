//! Patterns in which `*` stands for any run of characters and everything else for itself.

/// A compiled list.
#[derive(Debug)]
pub(super) struct Patterns(Vec<Pattern>);

#[derive(Debug)]
enum Pattern {
    /// No `*`: the text itself.
    Exact(String),
    /// What stands before the first `*`, between them in order, and after the last.
    Parts { prefix: String, middle: Vec<String>, suffix: String },
}

impl Patterns {
    /// Compiles a list; every text is a pattern.
    pub(super) fn compile(list: &[String]) -> Self {
        Self(list.iter().map(|text| Pattern::compile(text)).collect())
    }

    /// The index of the first pattern that matches the whole of `value`.
    pub(super) fn first(&self, value: &str) -> Option<u32> {
        self.0.iter().position(|pattern| pattern.matches(value)).and_then(|at| u32::try_from(at).ok())
    }
}

impl Pattern {
    fn compile(text: &str) -> Self {
        let Some((prefix, rest)) = text.split_once('*') else {
            return Self::Exact(text.to_owned());
        };
        let mut middle: Vec<String> = rest.split('*').map(str::to_owned).collect();
        let suffix = middle.pop().unwrap_or_default();
        middle.retain(|part| !part.is_empty());
        Self::Parts { prefix: prefix.to_owned(), middle, suffix }
    }

    /// Linear in the value for each part: the leftmost place of every part leaves the most room
    /// for the next, so nothing is ever tried twice.
    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => text == value,
            Self::Parts { prefix, middle, suffix } => {
                let Some(mut rest) =
                    value.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_suffix(suffix.as_str()))
                else {
                    return false;
                };
                for part in middle {
                    match rest.split_once(part.as_str()) {
                        Some((_, after)) => rest = after,
                        None => return false,
                    }
                }
                true
            }
        }
    }
}
