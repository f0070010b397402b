//! From HTML to its words, in one pass and without a tree: this is for a model to read, not for a
//! browser to show. What is between `<script>`, `<style>` and the like is left out with its tags.

/// Elements whose content is no text.
const SILENT: [&str; 7] = ["script", "style", "template", "noscript", "svg", "head", "iframe"];
/// Elements that begin a new line.
const BLOCKS: [&str; 21] = [
    "p",
    "div",
    "br",
    "li",
    "ul",
    "ol",
    "tr",
    "table",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "header",
    "footer",
    "blockquote",
    "pre",
    "hr",
];
/// Looked through for a sign of HTML, bytes.
const LOOK: usize = 1024;

/// Whether a text is a page and not one that speaks of pages.
pub(crate) fn is_html(text: &str) -> bool {
    let mut end = text.len().min(LOOK);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let head = text.get(..end).unwrap_or_default().trim_start().to_ascii_lowercase();
    let page = ["<!doctype html", "<html", "<head", "<body"];
    page.iter().any(|sign| head.starts_with(sign)) || (head.starts_with('<') && head.contains("<html"))
}

/// The words, with one line for each block.
pub(crate) fn to_text(html: &str) -> String {
    let mut words = Words::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        words.text(rest.get(..at).unwrap_or_default());
        let from = rest.get(at..).unwrap_or_default();
        if from.starts_with("<!--") {
            rest = after(from, "-->");
            continue;
        }
        let Some(tag) = Tag::at(from) else {
            // A `<` that begins no tag is a sign like any other.
            words.text("<");
            rest = from.get(1..).unwrap_or_default();
            continue;
        };
        rest = tag.rest;
        if !tag.closes && SILENT.contains(&tag.name.as_str()) {
            rest = behind_element(rest, &tag.name);
        } else if BLOCKS.contains(&tag.name.as_str()) {
            words.line();
        }
    }
    words.text(rest);
    words.done()
}

struct Tag<'a> {
    name: String,
    closes: bool,
    rest: &'a str,
}

impl<'a> Tag<'a> {
    /// The tag that begins here, if one does. Quotes in it may hold a `>`.
    fn at(text: &'a str) -> Option<Self> {
        let inside = text.strip_prefix('<')?;
        let (closes, inside) = inside.strip_prefix('/').map_or((false, inside), |rest| (true, rest));
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
            return None;
        }
        let name: String = inside.chars().take_while(char::is_ascii_alphanumeric).collect();
        let mut quote = None;
        for (at, c) in inside.char_indices() {
            match (quote, c) {
                (None, '>') => {
                    let rest = inside.get(at + 1..).unwrap_or_default();
                    return Some(Self { name: name.to_ascii_lowercase(), closes, rest });
                }
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), _) if open == c => quote = None,
                _ => {}
            }
        }
        // Unfinished: nothing behind it can be told from it.
        Some(Self { name: name.to_ascii_lowercase(), closes, rest: "" })
    }
}

/// What stands behind the end of an element whose content is left out.
fn behind_element<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let from = rest.get(at..).unwrap_or_default();
        match Tag::at(from) {
            Some(tag) if tag.closes && tag.name == name => return tag.rest,
            _ => rest = from.get(2..).unwrap_or_default(),
        }
    }
    ""
}

fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// Collects words: one blank between them, one line break between blocks.
#[derive(Default)]
struct Words {
    text: String,
    blank: bool,
    broken: bool,
}

impl Words {
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let (c, length) = if c == '&' { entity(rest) } else { (c, c.len_utf8()) };
            rest = rest.get(length..).unwrap_or_default();
            if c.is_whitespace() {
                self.blank = true;
                continue;
            }
            if !self.text.is_empty() && self.broken {
                self.text.push('\n');
            } else if !self.text.is_empty() && self.blank {
                self.text.push(' ');
            }
            (self.blank, self.broken) = (false, false);
            self.text.push(c);
        }
    }

    fn line(&mut self) {
        self.broken = true;
    }

    fn done(self) -> String {
        self.text
    }
}

/// The character that an entity stands for and its length here; `&` where it is none.
fn entity(text: &str) -> (char, usize) {
    const NAMED: [(&str, char); 7] = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("hellip", '…'),
    ];
    let body = text
        .get(1..)
        .and_then(|rest| rest.split_once(';'))
        .map(|(body, _)| body)
        .filter(|body| body.len() <= 8);
    let Some(body) = body else { return ('&', 1) };
    let number = body.strip_prefix('#').and_then(|digits| match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    });
    let found = number
        .and_then(char::from_u32)
        .or_else(|| NAMED.iter().find(|(name, _)| *name == body).map(|(_, meant)| *meant));
    found.map_or(('&', 1), |meant| (meant, body.len() + 2))
}
