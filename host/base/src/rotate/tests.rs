use super::*;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_full_file_is_put_aside_and_the_oldest_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log/x.log");
    let log = RotatingFile::open(&path, 10, 2).unwrap();
    for number in 0..8 {
        log.append(format!("line {number}\n").as_bytes()).unwrap();
    }
    assert_eq!(read(&path), "line 6\nline 7\n");
    assert_eq!(read(&numbered(&path, 1)), "line 4\nline 5\n");
    assert_eq!(read(&numbered(&path, 2)), "line 2\nline 3\n");
    assert!(!numbered(&path, 3).exists());
}

#[test]
fn two_writers_of_one_file_lose_no_line_when_one_puts_it_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.log");
    let (one, other) = (RotatingFile::open(&path, 10, 9).unwrap(), RotatingFile::open(&path, 10, 9).unwrap());
    for number in 0..10 {
        one.append(format!("a {number}\n").as_bytes()).unwrap();
        other.append(format!("b {number}\n").as_bytes()).unwrap();
    }
    let mut all: Vec<String> = (0..10).map(|number| read(&numbered(&path, number))).collect();
    all.push(read(&path));
    let lines = all.concat();
    assert_eq!(lines.lines().count(), 20, "{lines}");
}

#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log/x.log");
    RotatingFile::open(&path, 10, 1).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}
