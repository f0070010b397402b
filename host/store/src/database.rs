//! Opening a SQLite file: private, in WAL mode, of a format this build knows.
//!
//! A file of a newer format is refused (`PRAGMA user_version`); a file that SQLite cannot read is
//! [`StoreError::Damaged`]; an empty or missing one is created in one transaction, so that two
//! processes that start together agree. Read-only connections are opened read-only or not at all:
//! there is no second attempt with more rights (lesson FT-08).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::sys;

/// How long an operation waits for another process that holds the database.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a change of the journal mode is tried while another process opens the same new file.
const MODE_ATTEMPTS: u32 = 40;
const MODE_PAUSE: Duration = Duration::from_millis(50);

/// What a commit survives (design section 7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, kill -9 included (`synchronous=NORMAL`).
    #[default]
    Process,
    /// The loss of power as well (`synchronous=FULL`, an fsync for each group of rows).
    Disk,
}

/// The format of one database file.
pub(crate) struct Format {
    /// The number in `PRAGMA user_version`.
    pub(crate) number: i64,
    /// The statements that make an empty file this format.
    pub(crate) create: &'static str,
    /// The statements that make a file of an earlier format the next one, from format 1 on.
    pub(crate) migrate: &'static [&'static str],
}

/// An open database and its path, for messages.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
}

impl Database {
    /// Opens for writing, creating the file where it is missing.
    pub(crate) fn open(path: &Path, format: &Format, durability: Durability) -> Result<Self, StoreError> {
        Self::open_filled(path, format, durability, &|_| Ok(()))
    }

    /// The same; where the tables are made, `prepare` is called in the transaction that makes them, and its
    /// error leaves the file as empty as it was. So what a new database must hold is there from its first
    /// moment on, and nobody else makes one meanwhile.
    pub(crate) fn open_filled(
        path: &Path,
        format: &Format,
        durability: Durability,
        prepare: &dyn Fn(&Connection) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        // SQLite would create the file with the umask's rights; its WAL and index files take
        // theirs from the database, so this one step makes all three private.
        let file = sys::open_private(path).map_err(|source| {
            if sys::is_link(&source) {
                StoreError::linked(path)
            } else {
                StoreError::io("open", path, source)
            }
        })?;
        if !sys::is_alone(&file).map_err(|source| StoreError::io("look at", path, source))? {
            return Err(StoreError::linked(path));
        }
        drop(file);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut database = Self::connect(path, flags)?;
        // The number comes first: nothing is written into a file of a newer format.
        database.check_format(format)?;
        database.use_wal()?;
        database.set(
            "synchronous",
            match durability {
                Durability::Process => "NORMAL",
                Durability::Disk => "FULL",
            },
        )?;
        database.bring_up(format, prepare)?;
        Ok(database)
    }

    /// Opens for reading. A missing file is an error; so is everything that would need a write.
    pub(crate) fn open_read_only(path: &Path, format: &Format) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Self::connect(path, flags)?;
        database.set("query_only", "ON")?;
        database.set("cell_size_check", "ON")?;
        database.check_format(format)?;
        Ok(database)
    }

    /// Opens a file that nobody writes any more, wherever it lies: on a medium that cannot be written,
    /// SQLite would otherwise want to make files beside it. With a WAL beside it, it is opened as usual.
    pub(crate) fn open_copy(path: &Path, format: &Format) -> Result<Self, StoreError> {
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        if Path::new(&wal).exists() {
            return Self::open_read_only(path, format);
        }
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let absolute = std::path::absolute(path).map_err(|source| StoreError::io("find", path, source))?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/.-_".contains(byte);
        let escaped = absolute
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .map(|byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") });
        let uri = format!("file:{}?immutable=1", escaped.collect::<String>());
        let mut database = Self::connect(Path::new(&uri), flags)?;
        path.clone_into(&mut database.path);
        database.set("query_only", "ON")?;
        database.set("cell_size_check", "ON")?;
        database.check_format(format)?;
        Ok(database)
    }

    /// Turns what SQLite said into an error of this database.
    pub(crate) fn error(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError::sqlite(doing, &path, source)
    }

    /// Starts a transaction that holds the write lock from its first moment on.
    pub(crate) fn write(&mut self, doing: &'static str) -> Result<rusqlite::Transaction<'_>, StoreError> {
        let path = &self.path;
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|source| StoreError::sqlite(doing, path, source))
    }

    /// Reads `PRAGMA user_version`.
    pub(crate) fn format_number(&self) -> Result<i64, StoreError> {
        self.connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(self.error("read the format number"))
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let connection = Connection::open_with_flags(path, flags)
            .map_err(|source| StoreError::sqlite("open the database", path, source))?;
        let database = Self { connection, path: path.to_owned() };
        database.connection.busy_timeout(BUSY_TIMEOUT).map_err(database.error("set the time-out"))?;
        // A schema that somebody else wrote must not call functions with side effects.
        database.set("trusted_schema", "OFF")?;
        database.connection.set_prepared_statement_cache_capacity(32);
        Ok(database)
    }

    fn check_format(&self, format: &Format) -> Result<(), StoreError> {
        let found = self.format_number()?;
        if found > format.number {
            return Err(StoreError::NewerFormat { path: self.path.clone(), found, known: format.number });
        }
        Ok(())
    }

    fn bring_up(
        &mut self,
        format: &Format,
        prepare: &dyn Fn(&Connection) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let found = self.format_number()?;
        if found == format.number {
            return Ok(());
        }
        if found > 0 {
            self.keep_copy(found)?;
        }
        let path = self.path.clone();
        let failed = |source| StoreError::sqlite("create the tables", &path, source);
        let transaction = self.write("create the tables")?;
        let (number, objects): (i64, i64) = transaction
            .query_row(
                "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(failed)?;
        if number == format.number {
            // Another process was faster.
            return Ok(());
        }
        if (1..format.number).contains(&number) {
            for step in format.migrate.iter().skip(usize::try_from(number - 1).unwrap_or(usize::MAX)) {
                transaction.execute_batch(step).map_err(failed)?;
            }
            transaction.pragma_update(None, "user_version", format.number).map_err(failed)?;
            return transaction.commit().map_err(failed);
        }
        if number != 0 || objects != 0 {
            return Err(StoreError::Damaged {
                path: path.clone(),
                what: format!("it has format {number} and {objects} objects of unknown origin"),
                repair: "move the file away if it is not Toolgate's",
            });
        }
        transaction.execute_batch(format.create).map_err(failed)?;
        transaction.pragma_update(None, "user_version", format.number).map_err(failed)?;
        prepare(&transaction)?;
        transaction.commit().map_err(failed)
    }

    /// A file of an earlier format is kept as it is before it is changed, under its own name with the
    /// number of the format behind it. A copy that is there already was made by whoever came first.
    fn keep_copy(&self, found: i64) -> Result<(), StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".format-{found}"));
        let copy = PathBuf::from(name);
        if copy.exists() {
            return Ok(());
        }
        let mut unfinished = copy.clone().into_os_string();
        unfinished.push(format!(".{}", toolgate_base::random_hex(8)));
        let unfinished = PathBuf::from(unfinished);
        // An empty, private file is what SQLite fills; it would make one that others can read.
        drop(sys::open_private(&unfinished).map_err(|source| StoreError::io("create", &unfinished, source))?);
        self.connection
            .execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])
            .map_err(self.error("copy the database before its format changes"))?;
        std::fs::rename(&unfinished, &copy).map_err(|source| StoreError::io("rename", &copy, source))
    }

    /// SQLite does not wait while the mode of a new file changes, so the wait is here.
    fn use_wal(&self) -> Result<(), StoreError> {
        let mut attempt = 0;
        loop {
            let mode =
                self.connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0));
            match mode {
                Ok(mode) if mode == "wal" => return Ok(()),
                Err(error) if is_busy(&error) && attempt < MODE_ATTEMPTS => {
                    attempt += 1;
                    std::thread::sleep(MODE_PAUSE);
                }
                Err(error) => return Err(self.error("switch to WAL")(error)),
                Ok(mode) => {
                    return Err(StoreError::Damaged {
                        path: self.path.clone(),
                        what: format!("its journal mode stays `{mode}`"),
                        repair: "the data directory must be on a local file system",
                    });
                }
            }
        }
    }

    fn set(&self, pragma: &str, value: &str) -> Result<(), StoreError> {
        self.connection.pragma_update(None, pragma, value).map_err(self.error("set up the connection"))
    }
}

impl StoreError {
    /// A failed file operation.
    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Sorts an error of SQLite: locked, damaged, or anything else.
    pub(crate) fn sqlite(doing: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        if is_busy(&source) {
            return Self::Locked { doing, path: path.to_owned() };
        }
        if is_damage(&source) {
            return Self::Damaged {
                path: path.to_owned(),
                what: format!("SQLite cannot {doing}: {source}"),
                repair: "restore it from a copy, or move it and its -wal and -shm files away",
            };
        }
        Self::Sqlite { doing, path: path.to_owned(), source: Arc::new(source) }
    }
}

/// Whether another connection holds the lock.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the file holds something else than it should. A column of another type is damage as
/// well: this crate's tables are strict.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        )
}
