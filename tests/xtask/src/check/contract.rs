//! The plugin contract stays what it was: `wit/` takes every component that was built for the WIT
//! of a release of Toolgate, and each of its items says what it means.
//!
//! `registry/wit/<version>/` holds the WIT as it was released, and never changes. For each world of
//! it, `wit_component::semver_check` puts a component of that world where the world of today is
//! wanted: more imports are fine, a changed type or a new export that a plugin must have is not.

use std::fs;
use std::path::Path;

use wit_parser::{Docs, PackageId, Resolve, SourceMap, TypeDef, TypeDefKind};

use crate::Outcome;
use crate::check::Finding;
use crate::project::Project;

const CONTRACT: &str = "wit";
const RELEASED: &str = "registry/wit";

/// What a component of a released contract would miss, and items without a word of explanation.
pub(super) fn check(project: &Project) -> Outcome<Vec<Finding>> {
    let today = project.path(CONTRACT);
    let mut findings = undocumented(&today)?;
    let mut releases: Vec<String> = fs::read_dir(project.path(RELEASED))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Outcome<_>>()?;
    releases.sort();
    if releases.is_empty() {
        findings.push(Finding::new(RELEASED, "holds no released contract to compare with"));
    }
    for release in releases {
        findings.extend(compare(&today, &project.path(&format!("{RELEASED}/{release}")), &release)?);
    }
    Ok(findings)
}

/// Every world of a release against the world of the same name today.
fn compare(today: &Path, then: &Path, release: &str) -> Outcome<Vec<Finding>> {
    let mut resolve = Resolve::default();
    let today = push(&mut resolve, today, None)?;
    // One resolve holds a package once; the version is no part of the comparison.
    let then = push(&mut resolve, then, Some((release, "0.0.0-released")))?;
    let worlds = |package| resolve.packages.get(package).map(|package| &package.worlds).into_iter().flatten();
    let mut findings = Vec::new();
    for (name, old) in worlds(then) {
        let Some((_, new)) = worlds(today).find(|(other, _)| *other == name) else {
            findings.push(Finding::new(CONTRACT, format!("has no world `{name}`, which {release} has")));
            continue;
        };
        if let Err(fault) = wit_component::semver_check(resolve.clone(), *old, *new) {
            findings.push(Finding::new(
                CONTRACT,
                format!("a component for the world `{name}` of {release} would no longer fit: {fault:#}"),
            ));
        }
    }
    Ok(findings)
}

/// Reads the WIT files of a directory as one package, its version replaced where one is given.
fn push(resolve: &mut Resolve, directory: &Path, version: Option<(&str, &str)>) -> Outcome<PackageId> {
    let mut map = SourceMap::default();
    let mut files: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let path = file.path();
        if path.extension().is_some_and(|extension| extension == "wit") {
            let mut text = fs::read_to_string(&path)?;
            if let Some((from, to)) = version {
                text = text.replace(&format!("@{from}"), &format!("@{to}"));
            }
            map.push(&path, text);
        }
    }
    let parsed = map.parse().map_err(|(_, fault)| format!("{}: {fault}", directory.display()))?;
    resolve.push_group(parsed).map_err(|fault| format!("{}: {fault}", directory.display()).into())
}

/// Items of the contract without documentation. A name that is used from another interface is
/// explained there, and the cases of an enum may say it all by their names.
fn undocumented(contract: &Path) -> Outcome<Vec<Finding>> {
    let mut resolve = Resolve::default();
    let package = push(&mut resolve, contract, None)?;
    let package = resolve.packages.get(package).ok_or("the contract is no package")?;
    let mut items: Vec<(String, &Docs)> = Vec::new();
    for (name, world) in package.worlds.iter().filter_map(|(name, id)| Some((name, resolve.worlds.get(*id)?)))
    {
        items.push((format!("world {name}"), &world.docs));
    }
    for (name, interface) in
        package.interfaces.iter().filter_map(|(name, id)| Some((name, resolve.interfaces.get(*id)?)))
    {
        items.push((format!("interface {name}"), &interface.docs));
        items.extend(interface.functions.iter().map(|(at, item)| (format!("{name}.{at}"), &item.docs)));
        for (at, item) in interface.types.iter().filter_map(|(at, id)| Some((at, resolve.types.get(*id)?))) {
            items.extend(type_items(&format!("{name}.{at}"), item));
        }
    }
    let silent = |docs: &Docs| docs.contents.as_deref().is_none_or(|text| text.trim().is_empty());
    let silent = items.into_iter().filter(|(_, docs)| silent(docs));
    Ok(silent.map(|(what, _)| Finding::new(CONTRACT, format!("{what} has no documentation"))).collect())
}

/// A type and its parts.
fn type_items<'a>(name: &str, item: &'a TypeDef) -> Vec<(String, &'a Docs)> {
    let part = |part: &str| format!("{name}.{part}");
    let mut items: Vec<(String, &Docs)> = match &item.kind {
        TypeDefKind::Type(_) => return Vec::new(),
        TypeDefKind::Record(record) => {
            record.fields.iter().map(|field| (part(&field.name), &field.docs)).collect()
        }
        TypeDefKind::Variant(variant) => {
            variant.cases.iter().map(|case| (part(&case.name), &case.docs)).collect()
        }
        TypeDefKind::Flags(flags) => flags.flags.iter().map(|flag| (part(&flag.name), &flag.docs)).collect(),
        _ => Vec::new(),
    };
    items.push((name.to_owned(), &item.docs));
    items
}

#[cfg(test)]
mod tests;
