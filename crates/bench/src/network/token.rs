//! The secret that both ends know, and the proofs made with the key of a session.

use std::io::Read;
use std::path::Path;

use flatout_io::cause_text;
use flatout_sys::cancel::CancelToken;
use flatout_sys::input;

/// Shortest token that is taken: shorter ones can be tried out.
pub const LEAST_TOKEN_BYTES: usize = 16;
/// Longest token file that is read.
const MAX_TOKEN_BYTES: u64 = 4096;
/// Random bytes of a token that the server makes.
const NEW_TOKEN_BYTES: usize = 16;

/// What makes a data connection known: its length is that of the first message of a handshake, so
/// that a server reads as much of everybody before it decides.
pub const PROOF_BYTES: usize = 50;
/// The first two bytes of a proof, as a length of a frame impossible.
pub const PROOF_MARK: u16 = 0xda7a;
const HASH_BYTES: usize = 32;

/// The key that both ends derive from a token.
#[derive(Clone)]
pub struct Key(pub [u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Key(…)")
    }
}

impl Key {
    /// The key of a token.
    pub fn of(token: &str) -> Self {
        Self(blake3::derive_key("flatout network 1 token", token.trim().as_bytes()))
    }

    /// The key of loopback without a token: everybody on this machine knows it.
    pub fn open() -> Self {
        Self::of("")
    }

    /// The key of the token in a file, `-` for standard input; white space around it does not count.
    ///
    /// Errors: the file cannot be read, or holds no token, in one line.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let complain = |why: String| format!("cannot read the token file {path:?}: {why}");
        let mut text = String::new();
        let opened = input::open(path, CancelToken::signals());
        let file = opened.map_err(|error| complain(cause_text(&error)))?;
        let read = file.take(MAX_TOKEN_BYTES).read_to_string(&mut text);
        read.map_err(|error| complain(cause_text(&error)))?;
        if text.trim().len() < LEAST_TOKEN_BYTES {
            return Err(complain(format!("a token has at least {LEAST_TOKEN_BYTES} characters")));
        }
        Ok(Self::of(&text))
    }
}

/// A new random token.
///
/// Errors: the kernel has no random numbers.
pub fn new_token() -> std::io::Result<String> {
    let bytes = random::<NEW_TOKEN_BYTES>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Random bytes of the kernel.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // So few come whole (getrandom(2)).
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Proves that a connection belongs to a session, and says which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Number of the test.
    pub test: u32,
    /// Number of the flow.
    pub flow: u16,
}

impl Proof {
    /// The bytes that prove the session, for this connection only.
    pub fn encode(self, session_key: &[u8; 32]) -> [u8; PROOF_BYTES] {
        let mut bytes = [0; PROOF_BYTES];
        bytes[..2].copy_from_slice(&PROOF_MARK.to_be_bytes());
        bytes[2..6].copy_from_slice(&self.test.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.flow.to_be_bytes());
        let proof = blake3::keyed_hash(session_key, &bytes[..PROOF_BYTES - HASH_BYTES]);
        bytes[PROOF_BYTES - HASH_BYTES..].copy_from_slice(proof.as_bytes());
        bytes
    }

    /// What a proof says, if it holds. The comparison takes the same time either way.
    pub fn decode(bytes: &[u8], session_key: &[u8; 32]) -> Option<Self> {
        let bytes: &[u8; PROOF_BYTES] = bytes.try_into().ok()?;
        let (head, proof) = bytes.split_at(PROOF_BYTES - HASH_BYTES);
        let proof: [u8; HASH_BYTES] = proof.try_into().ok()?;
        let is_marked = head[..2] == PROOF_MARK.to_be_bytes() && head[8..].iter().all(|b| *b == 0);
        let is_proved = blake3::keyed_hash(session_key, head) == blake3::Hash::from(proof);
        (is_marked && is_proved).then(|| Self {
            test: u32::from_be_bytes([head[2], head[3], head[4], head[5]]),
            flow: u16::from_be_bytes([head[6], head[7]]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_for_one_connection_of_one_session() {
        let proof = Proof { test: 3, flow: 2 };
        let bytes = proof.encode(&[9; 32]);
        assert_eq!(Proof::decode(&bytes, &[9; 32]), Some(proof));
        assert_eq!(Proof::decode(&bytes, &[8; 32]), None);
        for place in 0..PROOF_BYTES {
            let mut bytes = bytes;
            bytes[place] ^= 1;
            assert_eq!(Proof::decode(&bytes, &[9; 32]), None, "byte {place}");
        }
        assert_eq!(Proof::decode(&bytes[..49], &[9; 32]), None);
    }

    #[test]
    fn tokens_are_random_and_read_without_white_space() {
        let token = new_token().unwrap();
        assert_eq!(token.len(), 32);
        assert_ne!(token, new_token().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, format!("  {token}\n")).unwrap();
        assert_eq!(Key::from_file(&path).unwrap().0, Key::of(&token).0);
        std::fs::write(&path, "short\n").unwrap();
        assert!(Key::from_file(&path).unwrap_err().contains("at least 16"));
        assert!(Key::from_file(&folder.path().join("none")).is_err());
    }
}
