//! Makes every gate of a file one that can be switched off while the program runs.
//!
//! The text around a gate stays twice: as it is, and as it is without the gate, under an `if` that asks the
//! environment. What is doubled is the smallest piece of a function around the gate whose type does not
//! depend on what stands in it: a block, the body of a closure or of a match arm, a condition. So any text
//! that compiles where the gate stood compiles under the `if`, and nobody has to say how a gate is switched.
//!
//! Gates in one piece stand in one chain of `if`; a piece inside another one is switched in each copy of it.
//! Offsets are of the source as it is, so that gates cannot break each other, whatever their order.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::Gate;

/// The variable that names the gate that is off. Toolgate hands variables of the locale on to the gateway
/// that a client starts, and no others, so its name begins like theirs; the tests pass it to the binary.
pub(crate) const VARIABLE: &str = "LC_TOOLGATE_WITHOUT_GATE";

type Place = Range<usize>;

/// What is written where a gate is called, when it is off.
struct Edit<'a> {
    gate: &'a str,
    place: Place,
    text: &'a str,
}

/// The source with a switch for each of these gates, which are all of this file.
pub(crate) fn switched(source: &str, gates: &[&Gate]) -> Result<String, String> {
    let whole = syn::parse_file(source).map_err(|error| format!("it cannot be read as Rust: {error}"))?;
    let mut pieces = Pieces::default();
    pieces.visit_file(&whole);
    let mut switches: BTreeMap<(usize, usize), Vec<Edit>> = BTreeMap::new();
    for gate in gates {
        let edit = edit(source, gate)?;
        let piece = pieces.around(&edit.place).ok_or_else(|| {
            format!("gate `{}` stands in no body of a function, so it cannot be switched", gate.name)
        })?;
        switches.entry((piece.start, piece.end)).or_default().push(edit);
    }
    let text = Switches { source, switches }.write(0..source.len(), None);
    syn::parse_file(&text).map_err(|error| {
        let at = error.span().start().line;
        let line = text.lines().nth(at.saturating_sub(1)).unwrap_or_default();
        format!("without one of its gates it is no Rust any more: {error}, at `{}`", line.trim())
    })?;
    Ok(text)
}

/// What differs between the call of a gate and what is left without it.
fn edit<'a>(source: &str, gate: &'a Gate) -> Result<Edit<'a>, String> {
    let mut places = source.match_indices(gate.call.as_str()).map(|(at, _)| at);
    let (Some(at), None) = (places.next(), places.next()) else {
        return Err(format!("the call of gate `{}` does not stand there exactly once", gate.name));
    };
    let (call, without) = (gate.call.as_str(), gate.without.as_str());
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
    };
    let before = same(&mut call.chars().zip(without.chars()));
    let (call, without) = (call.get(before..).unwrap_or_default(), without.get(before..).unwrap_or_default());
    let after = same(&mut call.chars().rev().zip(without.chars().rev()));
    Ok(Edit {
        gate: &gate.name,
        place: at + before..at + before + call.len() - after,
        text: without.get(..without.len() - after).unwrap_or_default(),
    })
}

/// The switches of a file, by the piece in which they stand.
struct Switches<'a> {
    source: &'a str,
    switches: BTreeMap<(usize, usize), Vec<Edit<'a>>>,
}

impl Switches<'_> {
    /// A part of the source with this edit, and with the switches of all pieces inside of it.
    fn write(&self, part: Place, edit: Option<&Edit>) -> String {
        let mut written = String::new();
        let mut at = part.start;
        for (place, text) in self.changes(&part, edit) {
            written.push_str(self.text(at..place.start));
            written.push_str(&text);
            at = place.end;
        }
        written.push_str(self.text(at..part.end));
        written
    }

    fn changes(&self, part: &Place, edit: Option<&Edit>) -> Vec<(Place, String)> {
        let inside = |piece: &Place| {
            *piece != *part && part.start <= piece.start && piece.end <= part.end
                // What the edit takes away, wholly or in part, has no switch of its own in this copy.
                && edit.is_none_or(|edit| piece.end <= edit.place.start || edit.place.end <= piece.start)
        };
        let pieces = self.switches.iter().map(|((start, end), edits)| (*start..*end, edits));
        // Of two that begin together the outer one comes first.
        let mut outer: Vec<_> = pieces.filter(|(piece, _)| inside(piece)).collect();
        outer.sort_by_key(|(piece, _)| (piece.start, usize::MAX - piece.end));
        let mut changes: Vec<(Place, String)> = Vec::new();
        for (piece, edits) in outer {
            if changes.last().is_none_or(|(last, _)| last.end <= piece.start) {
                changes.push((piece.clone(), self.switch(&piece, edits)));
            }
        }
        changes.extend(edit.map(|edit| (edit.place.clone(), edit.text.to_owned())));
        changes.sort_by_key(|(place, _)| (place.start, place.end));
        changes
    }

    /// One piece with a switch for each of its gates.
    fn switch(&self, piece: &Place, edits: &[Edit]) -> String {
        let cases = edits.iter().map(|edit| {
            let without = self.write(piece.clone(), Some(edit));
            let gate = edit.gate;
            let asked = format!("::std::env::var_os({VARIABLE:?}).is_some_and(|gate| gate == {gate:?})");
            format!("if {asked} {{\n{without}\n}} else ")
        });
        format!("{{ {}{{\n{}\n}} }}", cases.collect::<String>(), self.write(piece.clone(), None))
    }

    fn text(&self, place: Place) -> &str {
        self.source.get(place).unwrap_or_default()
    }
}

/// The pieces of a file that may be doubled.
#[derive(Default)]
struct Pieces(Vec<Place>);

impl Pieces {
    /// The smallest that has all of a place in it.
    fn around(&self, place: &Place) -> Option<&Place> {
        let around = self.0.iter().filter(|piece| piece.start <= place.start && place.end <= piece.end);
        around.min_by_key(|piece| piece.len())
    }

    fn body(&mut self, body: &syn::Expr) {
        // Blocks are pieces by themselves; two closures or two futures are of two types.
        if !matches!(body, syn::Expr::Block(_) | syn::Expr::Async(_) | syn::Expr::Closure(_)) {
            self.0.push(body.span().byte_range());
        }
    }

    fn condition(&mut self, condition: &syn::Expr) {
        if !binds(condition) {
            self.0.push(condition.span().byte_range());
        }
    }
}

/// Whether a condition has a `let` that the block after it uses.
fn binds(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(two) => binds(&two.left) || binds(&two.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Pieces {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        let braces = block.brace_token.span;
        self.0.push(braces.open().byte_range().end..braces.close().byte_range().start);
        visit::visit_block(self, block);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.body(&closure.body);
        visit::visit_expr_closure(self, closure);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.body(&arm.body);
        visit::visit_arm(self, arm);
    }

    fn visit_expr_if(&mut self, choice: &'ast syn::ExprIf) {
        self.condition(&choice.cond);
        visit::visit_expr_if(self, choice);
    }

    fn visit_expr_while(&mut self, round: &'ast syn::ExprWhile) {
        self.condition(&round.cond);
        visit::visit_expr_while(self, round);
    }

    // The compiler evaluates these, and it has no environment to ask.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.sig.constness.is_none() {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if function.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

#[cfg(test)]
mod tests;
