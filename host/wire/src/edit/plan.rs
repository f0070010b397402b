//! Applying edits: they are sorted into a tree by their tokens, then the text is walked once along that tree.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use super::pointer::{self, Tokens, token_chars};
use super::{EditError, malformed, trim};
use crate::json::{self, Children};

/// What happens where a pointer names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It is an error, except for a last token, which inserts.
    Strict,
    /// Missing parents are made.
    Ensure,
    /// The edit is passed over. Only removals use it.
    Lenient,
}

/// What one edit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change<'e> {
    Put(&'e str),
    Remove,
}

/// Where edits go below one place of the document.
#[derive(Default)]
struct Node<'e> {
    /// The edit of this very place.
    edit: Option<Change<'e>>,
    /// Children by unescaped token.
    children: HashMap<String, Node<'e>>,
    /// Position among the siblings in the order they were first named.
    order: usize,
    /// Whether the walk met the place in the document.
    met: Cell<bool>,
    /// One of the pointers that lead through here, for error messages.
    pointer: &'e str,
}

pub(super) fn apply(json: &str, edits: &[(&str, Option<&str>)], manner: Manner) -> Result<String, EditError> {
    let mut root = Node::default();
    for &(pointer, value) in edits {
        if let Some(value) = value {
            check_value(pointer, value)?;
        }
        root.add(pointer, value)?;
    }
    match root.edit {
        Some(Change::Put(value)) => return Ok(trim(value).to_owned()),
        Some(Change::Remove) => return Err(EditError::Root),
        None => {}
    }
    let added: usize =
        edits.iter().map(|(pointer, value)| pointer.len() + value.map_or(0, str::len) + 8).sum();
    let mut out = String::with_capacity(json.len() + added);
    if root.children.is_empty() {
        out.push_str(json);
    } else {
        write_container(&mut out, json, &root, manner)?;
    }
    Ok(out)
}

fn check_value(pointer: &str, value: &str) -> Result<(), EditError> {
    serde_json::from_str::<&serde_json::value::RawValue>(value)
        .map(|_| ())
        .map_err(|_| EditError::BadValue(pointer.to_owned()))
}

impl<'e> Node<'e> {
    fn add(&mut self, pointer: &'e str, value: Option<&'e str>) -> Result<(), EditError> {
        let tokens = Tokens::of(pointer).ok_or_else(|| EditError::BadPointer(pointer.to_owned()))?;
        let mut node = self;
        for token in tokens {
            if node.edit.is_some() {
                return Err(EditError::Overlap(pointer.to_owned()));
            }
            let order = node.children.len();
            let fresh = || Node { order, pointer, ..Node::default() };
            node = node.children.entry(token_chars(token).collect()).or_insert_with(fresh);
        }
        if node.edit.is_some() || !node.children.is_empty() {
            return Err(EditError::Overlap(pointer.to_owned()));
        }
        node.edit = Some(value.map_or(Change::Remove, Change::Put));
        Ok(())
    }

    /// Children the walk did not meet, in the order they were named.
    fn unmet(&self) -> Vec<(&str, &Self)> {
        let mut unmet: Vec<_> = self
            .children
            .iter()
            .filter(|(_, node)| !node.met.get())
            .map(|(name, node)| (name.as_str(), node))
            .collect();
        unmet.sort_unstable_by_key(|(_, node)| node.order);
        unmet
    }

    /// The node of one child of the document, if an edit goes there.
    fn meet(&self, key: Option<&str>, position: usize) -> Option<&Self> {
        let node = match key {
            Some(key) if key.contains('\\') => self.children.get(&json::unescape(key).collect::<String>()),
            Some(key) => self.children.get(key),
            None => self.children.get(&position.to_string()),
        }?;
        node.met.set(true);
        Some(node)
    }
}

/// Writes a container with the edits below it. Recursion is bounded by the number of tokens in a pointer.
fn write_container(out: &mut String, text: &str, node: &Node<'_>, manner: Manner) -> Result<(), EditError> {
    let Some(mut children) = Children::of(text) else {
        if manner == Manner::Lenient {
            out.push_str(text);
            return Ok(());
        }
        return Err(EditError::NotThere(node.pointer.to_owned()));
    };
    let object = children.is_object();
    out.push_str(span(text, 0..children.position())?);
    let (mut first, mut length) = (true, 0);
    for child in children.by_ref() {
        let child = child.map_err(malformed)?;
        let target = node.meet(child.key, length);
        length += 1;
        if target.is_some_and(|target| target.edit == Some(Change::Remove)) {
            continue;
        }
        comma(out, &mut first);
        let Some(target) = target else {
            out.push_str(span(text, child.chunk)?);
            continue;
        };
        out.push_str(span(text, child.chunk.start..child.value.start)?);
        match target.edit {
            Some(Change::Put(value)) => out.push_str(trim(value)),
            // Removals were passed over above.
            Some(Change::Remove) => {}
            None => write_container(out, span(text, child.value.clone())?, target, manner)?,
        }
        out.push_str(span(text, child.value.end..child.chunk.end)?);
    }
    for (name, target) in node.unmet() {
        if object {
            insert_member(out, &mut first, name, target, manner)?;
        } else {
            append_element(out, &mut first, name, target, manner, length)?;
        }
    }
    out.push_str(span(text, children.position()..text.len())?);
    Ok(())
}

fn insert_member(
    out: &mut String,
    first: &mut bool,
    name: &str,
    target: &Node<'_>,
    manner: Manner,
) -> Result<(), EditError> {
    let inserts =
        matches!(target.edit, Some(Change::Put(_))) || (target.edit.is_none() && manner == Manner::Ensure);
    if inserts {
        comma(out, first);
        write_new(out, name, target);
    } else if manner != Manner::Lenient {
        return Err(EditError::Missing(target.pointer.to_owned()));
    }
    Ok(())
}

fn append_element(
    out: &mut String,
    first: &mut bool,
    name: &str,
    target: &Node<'_>,
    manner: Manner,
    length: usize,
) -> Result<(), EditError> {
    let position = pointer::index(name);
    match target.edit {
        Some(Change::Put(value)) if name == "-" || position == Some(length) => {
            comma(out, first);
            out.push_str(trim(value));
        }
        _ if manner == Manner::Lenient => {}
        _ if position.is_some() || name == "-" => return Err(EditError::Missing(target.pointer.to_owned())),
        _ => return Err(EditError::NotThere(target.pointer.to_owned())),
    }
    Ok(())
}

/// A member that was not there, with every object its edits need.
fn write_new(out: &mut String, name: &str, node: &Node<'_>) {
    out.push_str(&json::quote(name));
    out.push(':');
    if let Some(Change::Put(value)) = node.edit {
        out.push_str(trim(value));
        return;
    }
    out.push('{');
    let mut first = true;
    for (name, child) in node.unmet() {
        comma(out, &mut first);
        write_new(out, name, child);
    }
    out.push('}');
}

fn comma(out: &mut String, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(',');
    }
}

fn span(text: &str, range: Range<usize>) -> Result<&str, EditError> {
    let offset = range.start;
    text.get(range).ok_or(EditError::Malformed { offset })
}
