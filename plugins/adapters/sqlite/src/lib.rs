//! Lets one read-only statement through to a SQLite server, as it was parsed.
//!
//! Settings: `{"queries": {"read_query": "/query"}, "refuse": ["write_query", "create_table"],
//! "tables": ["notes"]}`; that is the default, but for `tables`, which is every table. `queries` says
//! under which pointer a tool takes its statement, `refuse` which tools are hidden and refused.
//!
//! The statement is parsed by a parser of SQL in this component (`sqlparser`, dialect SQLite). It
//! passes if it is exactly one, reads (`SELECT`, `VALUES`, `WITH` around those, `EXPLAIN` of them),
//! calls no function that leaves the database, and names only tables that are allowed. What the
//! server gets is the statement as it was understood, written out again: two readers of one text
//! cannot disagree about a comment, a quote or a second statement.
//!
//! The threat is a statement that begins like a question and is an order: a second statement behind
//! a `;`, `WITH … DELETE`, `ATTACH`, `PRAGMA`, `load_extension`. What a server does with other
//! arguments is not judged here.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Deserialize;
use sqlparser::ast::{Expr, ObjectName, Query, SetExpr, Statement, TableFactor, Visit, Visitor};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;
use toolgate_sdk::adapter::Change;
use toolgate_sdk::{Adapter, Edit, Error, Request, settings};

/// The adapter `toolgate/sqlite`.
pub struct Sqlite {
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default = "queries")]
    queries: BTreeMap<String, String>,
    #[serde(default = "refused")]
    refuse: Vec<String>,
    tables: Option<Vec<String>>,
}

fn queries() -> BTreeMap<String, String> {
    BTreeMap::from([("read_query".to_owned(), "/query".to_owned())])
}

fn refused() -> Vec<String> {
    ["write_query", "create_table"].map(str::to_owned).to_vec()
}

/// Longest statement, bytes.
const MAX_STATEMENT: usize = 16 << 10;
/// Deepest nesting that is parsed: what fits into the stack of a guest.
const MAX_DEPTH: usize = 24;
/// Functions that reach files or code outside the database.
const OUTSIDE: [&str; 8] =
    ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "lsdir", "fsdir", "zipfile"];

impl Adapter for Sqlite {
    fn configure() -> Result<Self, Error> {
        Ok(Self { settings: settings::parse()? })
    }

    fn tool(&self, request: &Request) -> Change {
        if self.settings.refuse.contains(&request.name()) {
            Change::Fail("this server is for reading".to_owned())
        } else {
            Change::Unchanged
        }
    }

    fn arguments(&self, request: &Request) -> Change {
        let tool = request.name();
        if self.settings.refuse.contains(&tool) {
            return Change::Fail(format!("`{tool}` is refused: this server is for reading"));
        }
        let Some(pointer) = self.settings.queries.get(&tool) else {
            return Change::Unchanged;
        };
        let text = match request.document().map(|arguments| arguments.text(pointer)) {
            Some(Ok(Some(text))) => text,
            Some(Err(fault)) => return Change::Fail(format!("the statement cannot be read: {fault}")),
            _ => return Change::Fail(format!("`{tool}` needs a statement, a string at {pointer}")),
        };
        match judge(&text, self.settings.tables.as_deref()) {
            Ok(statement) if statement == text => Change::Unchanged,
            Ok(statement) => {
                let value = Some(serde_json::Value::String(statement).to_string());
                Change::Patch(vec![Edit { pointer: pointer.clone(), value }])
            }
            Err(why) => Change::Fail(format!("the statement is refused: {why}")),
        }
    }
}

/// The statement as the server shall get it, or why not.
fn judge(text: &str, tables: Option<&[String]>) -> Result<String, String> {
    if text.len() > MAX_STATEMENT {
        return Err(format!("it is longer than {MAX_STATEMENT} bytes"));
    }
    let statements = Parser::new(&SQLiteDialect {})
        .with_recursion_limit(MAX_DEPTH)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|fault| format!("it cannot be understood: {fault}"))?;
    let [statement] = statements.as_slice() else {
        return Err(format!("it is {} statements, and one is allowed", statements.len()));
    };
    let mut judge = Judge { tables, own: Vec::new(), wrong: None };
    let _ = statement.visit(&mut judge);
    match judge.wrong {
        Some(wrong) => Err(wrong),
        None => Ok(statement.to_string()),
    }
}

/// Walks over everything a statement is made of.
struct Judge<'a> {
    tables: Option<&'a [String]>,
    /// Names that the statement itself gives to its parts (`WITH name AS …`).
    own: Vec<String>,
    wrong: Option<String>,
}

impl Judge<'_> {
    fn refuse(&mut self, why: impl Into<String>) -> ControlFlow<()> {
        self.wrong = Some(why.into());
        ControlFlow::Break(())
    }
}

impl Visitor for Judge<'_> {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            Statement::Query(_) | Statement::Explain { .. } => ControlFlow::Continue(()),
            other => {
                let text = other.to_string();
                let word = text.split_whitespace().next().unwrap_or_default().to_owned();
                self.refuse(format!("{word} is no statement that only reads"))
            }
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.own.extend(with.cte_tables.iter().map(|table| table.alias.name.value.to_lowercase()));
        }
        match reads(&query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => self.refuse(why),
        }
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = last(relation);
        let Some(tables) = self.tables else { return ControlFlow::Continue(()) };
        let qualified = relation.0.len() > 1;
        if (!qualified && self.own.contains(&name)) || tables.iter().any(|table| table.to_lowercase() == name)
        {
            return ControlFlow::Continue(());
        }
        self.refuse(format!("the table `{name}` is not among those that may be read"))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                let name = last(name);
                self.refuse(format!("`{name}` is a function in place of a table"))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression {
            let name = last(&function.name);
            if OUTSIDE.contains(&name.as_str()) {
                return self.refuse(format!("the function `{name}` reaches outside the database"));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether the body of a query only reads.
fn reads(body: &SetExpr) -> Result<(), String> {
    match body {
        SetExpr::Select(select) if select.into.is_some() => Err("SELECT INTO writes".to_owned()),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_) => Ok(()),
        SetExpr::SetOperation { left, right, .. } => reads(left).and_then(|()| reads(right)),
        other => {
            let text = other.to_string();
            Err(format!("{} is no query", text.split_whitespace().next().unwrap_or_default()))
        }
    }
}

/// The last part of a name, in lower case, as SQLite compares names.
fn last(name: &ObjectName) -> String {
    name.0
        .last()
        .map(|part| part.to_string().trim_matches(['"', '`', '[', ']']).to_lowercase())
        .unwrap_or_default()
}

toolgate_sdk::adapter!(Sqlite);

#[cfg(test)]
mod tests;
