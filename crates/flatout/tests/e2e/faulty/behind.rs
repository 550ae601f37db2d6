//! What files hold, put in and taken out behind the kernel's back.

use std::ffi::OsString;
use std::time::Duration;

use fuser::{FileType, INodeNo};

use super::state::State;

impl State {
    pub fn put(&mut self, name: &str, bytes: &[u8]) {
        let place = (INodeNo::ROOT.0, name.into());
        let number = self.add(place, FileType::RegularFile, 0o644);
        self.nodes.get_mut(&number).unwrap().bytes = bytes.to_vec();
    }

    pub fn rewrite(&mut self, name: &str, bytes: &[u8]) {
        let number = self.names[&(INodeNo::ROOT.0, name.into())];
        self.nodes.get_mut(&number).unwrap().bytes = bytes.to_vec();
        self.faults.changed += Duration::from_secs(1);
    }

    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let number = self.names.get(&(INodeNo::ROOT.0, name.into()))?;
        Some(self.nodes[number].bytes.clone())
    }

    pub fn names(&self) -> Vec<OsString> {
        self.names.keys().map(|(_, name)| name.clone()).collect()
    }
}
