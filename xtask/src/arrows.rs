//! Arrows: which room may use which. The table is the drawing of the house, as data.

use crate::workspace::Room;

/// Room, and the rooms that it may name in its manifest, tests included.
const ALLOWED: &[(&str, &[&str])] = &[
    ("flatout-sys", &[]),
    ("flatout-io", &["flatout-sys"]),
    ("flatout-measure", &["flatout-sys"]),
    ("flatout-tree", &["flatout-io", "flatout-sys"]),
    ("flatout-bench", &["flatout-io", "flatout-measure", "flatout-sys", "flatout-tree"]),
    ("flatout-report", &["flatout-measure"]),
    ("flatout-mpi", &["flatout-bench", "flatout-io", "flatout-sys", "flatout-tree"]),
    (
        "flatout",
        &[
            "flatout-bench",
            "flatout-io",
            "flatout-measure",
            "flatout-mpi",
            "flatout-report",
            "flatout-sys",
            "flatout-tree",
        ],
    ),
    ("flatout-benches", &["flatout-io", "flatout-measure", "flatout-report", "flatout-sys"]),
    ("xtask", &[]),
];

/// One complaint per arrow that the table does not draw, and per room that it does not know.
pub fn complaints(rooms: &[Room]) -> Vec<String> {
    rooms.iter().flat_map(complaints_of).collect()
}

fn complaints_of(room: &Room) -> Vec<String> {
    let name = &room.name;
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
        return vec![format!("{name}: a room without a row in the table of arrows")];
    };
    room.declared
        .iter()
        .filter(|used| ALLOWED.iter().any(|(known, _)| known == used))
        .filter(|used| !allowed.contains(&used.as_str()))
        .map(|used| format!("{name}: may not use {used} (allowed: {})", said(allowed)))
        .collect()
}

fn said(allowed: &[&str]) -> String {
    if allowed.is_empty() { "no other room".to_owned() } else { allowed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(name: &str, declared: &[&str]) -> Room {
        let declared = declared.iter().map(|&used| used.to_owned()).collect();
        Room { name: name.to_owned(), declared, ..Room::default() }
    }

    #[test]
    fn arrows_of_the_drawing_pass() {
        let house = [
            room("flatout-sys", &["rustix"]),
            room("flatout-io", &["flatout-sys", "serde"]),
            room("flatout-bench", &["flatout-io", "flatout-measure", "flatout-sys"]),
            room("flatout-report", &["flatout-measure"]),
            room("flatout", &["flatout-report", "flatout-sys", "clap"]),
            room("xtask", &["serde_json"]),
        ];
        assert_eq!(complaints(&house), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_upwards_or_sideways_is_named() {
        let found = complaints(&[
            room("flatout-report", &["flatout-bench"]),
            room("flatout-io", &["flatout-measure"]),
            room("flatout-sys", &["flatout-io"]),
            room("xtask", &["flatout-io"]),
        ]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(
            found[0],
            "flatout-report: may not use flatout-bench (allowed: flatout-measure)"
        );
        assert_eq!(found[3], "xtask: may not use flatout-io (allowed: no other room)");
    }

    #[test]
    fn a_room_that_nobody_drew_is_named() {
        let found = complaints(&[room("flatout-attic", &[])]);
        assert_eq!(found, ["flatout-attic: a room without a row in the table of arrows"]);
    }
}
