//! The second layer: what a parser understands, and that this is one plain SELECT over four tables.
//!
//! What is handed on is the statement written out again, so that a comment or a quote cannot mean one
//! thing here and another to SQLite.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Visit, Visitor};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

use crate::{QueryError, TABLES, refused};

/// Deepest nesting.
const MAX_DEPTH: usize = 32;

/// The statement as it was understood.
pub(crate) fn check(sql: &str) -> Result<String, QueryError> {
    let statements = Parser::new(&SQLiteDialect {})
        .with_recursion_limit(MAX_DEPTH)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| refused(format!("it cannot be understood: {error}")))?;
    let [statement] = statements.as_slice() else {
        return Err(refused(format!("it is {} statements, and one is allowed", statements.len())));
    };
    let Statement::Query(query) = statement else {
        return Err(refused("only a SELECT is allowed"));
    };
    outermost(query)?;
    let mut inside = Inside { queries: 0 };
    match statement.visit(&mut inside) {
        ControlFlow::Break(why) => Err(refused(why)),
        ControlFlow::Continue(()) => Ok(statement.to_string()),
    }
}

/// The whole: no WITH, no set operation, nothing that SQLite does not have.
fn outermost(query: &Query) -> Result<(), QueryError> {
    if query.with.is_some() {
        return Err(refused("WITH is not allowed"));
    }
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { op, .. } => return Err(refused(format!("{op} is not allowed"))),
        SetExpr::Query(_) => return Err(refused("a subquery is not allowed")),
        _ => return Err(refused("only a SELECT is allowed")),
    };
    if select.into.is_some() {
        return Err(refused("INTO is not allowed"));
    }
    let foreign = !query.locks.is_empty()
        || query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty()
        || is_foreign(select);
    if foreign { Err(refused("it has a clause that SQLite does not have")) } else { Ok(()) }
}

fn is_foreign(select: &Select) -> bool {
    select.top.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || !select.optimizer_hints.is_empty()
        || select.select_modifiers.is_some()
}

/// Walks over everything inside.
struct Inside {
    queries: usize,
}

impl Visitor for Inside {
    type Break = String;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.queries += 1;
        if self.queries > 1 {
            return ControlFlow::Break("a subquery is not allowed".to_owned());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<String> {
        let name = match relation.0.as_slice() {
            [part] => part.as_ident().map(|ident| ident.value.to_ascii_lowercase()),
            _ => None,
        };
        match name {
            Some(name) if TABLES.contains(&name.as_str()) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(format!(
                "`{relation}` is no table that can be asked; there are {}",
                TABLES.join(", ")
            )),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Table { args: None, .. } | TableFactor::NestedJoin { .. } => {
                ControlFlow::Continue(())
            }
            TableFactor::Derived { .. } => ControlFlow::Break("a subquery is not allowed".to_owned()),
            _ => ControlFlow::Break("only tables can be asked".to_owned()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<String> {
        match expression {
            Expr::Subquery(_) | Expr::Exists { .. } => {
                ControlFlow::Break("a subquery is not allowed".to_owned())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
