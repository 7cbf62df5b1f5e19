use super::*;
use crate::GitContents;
use berth_base::model::Contents;

#[test]
fn remembered_bytes_have_the_same_id_and_stay_out_of_the_repository() {
    let (_guard, repo) = bare();
    let mut writing = GitContents::writing(&repo).unwrap();
    let there = writing.put(b"there").unwrap();
    let mut remembering = GitContents::remembering(&repo).unwrap();
    assert_eq!(remembering.put(b"there").unwrap(), there);
    let new = remembering.put(b"new").unwrap();
    assert_eq!(remembering.put(b"new").unwrap(), new);
    assert_eq!(remembering.get(new).unwrap(), b"new");
    assert_eq!(remembering.get(there).unwrap(), b"there");
    assert!(repo.blob(new).is_err());
    assert_eq!(writing.put(b"new").unwrap(), new);
    assert_eq!(repo.blob(new).unwrap(), b"new");
}
