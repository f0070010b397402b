//! Where a path leads, read lexically below given directories. No file system is asked.
//!
//! Threat: an argument such as `/data/../etc/passwd` that passes a comparison of prefixes. `.`,
//! `..` and double slashes are resolved first, and directories are compared name by name, so that
//! `/data-old` is not below `/data`. Symbolic links are not seen here: what opens the file has to
//! follow none.

/// Absolute directories, compiled.
#[derive(Debug)]
pub(super) struct Roots(Vec<Vec<String>>);

impl Roots {
    /// Compiles a list of absolute directories.
    pub(super) fn compile(list: &[String]) -> Result<Self, String> {
        list.iter()
            .map(|root| {
                if !root.starts_with('/') || root.contains('\0') {
                    return Err(format!(
                        "`{}` is no absolute directory",
                        toolgate_base::display::escape(root)
                    ));
                }
                Ok(normal(&[], root))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The normal absolute path, or none when it leaves all directories. A relative path counts
    /// from the first directory.
    pub(super) fn resolve(&self, path: &str) -> Option<String> {
        if path.contains('\0') {
            return None;
        }
        let names = if path.starts_with('/') { normal(&[], path) } else { normal(self.0.first()?, path) };
        let within = self.0.iter().any(|root| names.starts_with(root));
        within.then(|| format!("/{}", names.join("/")))
    }
}

/// The names of `path` after those of `base`, with `.` and `..` resolved; `..` at the top stays there.
fn normal(base: &[String], path: &str) -> Vec<String> {
    let mut names = base.to_vec();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name.to_owned()),
        }
    }
    names
}
