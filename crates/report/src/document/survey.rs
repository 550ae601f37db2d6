//! A walk over a JSON document that keeps nothing of it: what it is, whether a key stands twice, and
//! how much memory it would take.
//!
//! serde keeps the last of two equal keys of a map without a word, and a document of 64 MiB may
//! become gigabytes of small values; so both are looked at before anything is built.

use std::collections::HashSet;
use std::fmt;

use flatout_measure::record::SCHEMA;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::foreign::Program;
use super::{MAX_MEMORY_BYTES, foreign, from_json, shortened};

/// What an element takes in a list that was doubled last when it was half as long: 32 bytes of
/// `serde_json::Value` in the old and the new one.
const VALUE_BYTES: u64 = 96;
/// What an object takes: a node of a B-tree has room for eleven members of 56 bytes.
const OBJECT_BYTES: u64 = 700;
/// The longest text. The longest in a record is a list of CPU flags or a command line.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Keys of the outermost object that are kept, to say what a foreign document is.
const MAX_KEYS: usize = 32;
/// The first member of every schema.
const FAMILY: &str = "flatout/";

/// What a document is like.
#[derive(Debug, Default)]
pub(super) struct Survey {
    is_object: bool,
    schema: Option<String>,
    keys: Vec<String>,
    memory_bytes: u64,
    /// The first thing that no record holds.
    oddity: Option<String>,
}

impl Survey {
    /// Walks over the whole document.
    pub(super) fn of(json: &str) -> Result<Self, String> {
        let mut survey = Self { memory_bytes: json.len() as u64, ..Self::default() };
        let mut parser = serde_json::Deserializer::from_str(json);
        let walk = Walk { survey: &mut survey, place: Level::Root };
        let walked = walk.deserialize(&mut parser).and_then(|()| parser.end());
        if survey.memory_bytes > MAX_MEMORY_BYTES {
            let most = MAX_MEMORY_BYTES >> 20;
            return Err(format!(
                "it would take more than {most} MiB of memory, the most that is given"
            ));
        }
        walked.map_err(from_json)?;
        Ok(survey)
    }

    /// Whether it can be a record of the schema that this program reads.
    pub(super) fn expect_record(&self) -> Result<(), String> {
        let Some(schema) = self.schema.as_deref() else {
            let lacks = if self.is_object { "has no member \"schema\"" } else { "is no object" };
            return Err(foreign(format_args!("its JSON {lacks}")));
        };
        if schema == SCHEMA {
            return self.oddity.clone().map_or(Ok(()), Err);
        }
        Err(match schema.strip_prefix(FAMILY).map(str::parse::<u32>) {
            Some(Ok(2..)) => format!(
                "it was made by a newer flatout: its schema is {schema}, this flatout reads {SCHEMA}"
            ),
            _ => foreign(format_args!("its schema is {:?}", shortened(schema))),
        })
    }

    /// The program whose result it is, where it is none of ours.
    pub(super) fn foreign(&self) -> Option<Program> {
        let is_foreign = self.is_object && self.schema.is_none();
        Program::of(&self.keys).filter(|_| is_foreign)
    }

    fn note(&mut self, oddity: impl FnOnce() -> String) {
        if self.oddity.is_none() {
            self.oddity = Some(oddity());
        }
    }

    fn charge<E: Error>(&mut self, bytes: u64) -> Result<(), E> {
        self.memory_bytes += bytes;
        if self.memory_bytes > MAX_MEMORY_BYTES { Err(E::custom("too much")) } else { Ok(()) }
    }

    fn look_at(&mut self, text: &str) {
        if text.len() > MAX_TEXT_BYTES {
            self.note(|| format!("it holds a text of {} bytes", text.len()));
        }
    }
}

/// Where in the document the walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Schema,
    Inside,
}

struct Walk<'a> {
    survey: &'a mut Survey,
    place: Level,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.survey.charge(VALUE_BYTES)?;
        deserializer.deserialize_any(self)
    }
}

/// Visits of values of which nothing is to be known.
macro_rules! passes {
    ($($visit:ident($($kind:ty)?))*) => {
        $(fn $visit<E: Error>(self $(, _: $kind)?) -> Result<(), E> { Ok(()) })*
    };
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    passes! {visit_unit() visit_bool(bool) visit_u64(u64) visit_i64(i64) visit_f64(f64)}

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.survey.look_at(text);
        if self.place == Level::Schema {
            self.survey.schema = Some(text.to_owned());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let survey = self.survey;
        while items
            .next_element_seed(Walk { survey: &mut *survey, place: Level::Inside })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let survey = self.survey;
        survey.is_object |= self.place == Level::Root;
        survey.charge(OBJECT_BYTES)?;
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            survey.look_at(&key);
            if self.place == Level::Root && survey.keys.len() < MAX_KEYS {
                survey.keys.push(key.clone());
            }
            let is_schema = self.place == Level::Root && key == "schema";
            let place = if is_schema { Level::Schema } else { Level::Inside };
            if seen.contains(&key) {
                survey.note(|| format!("the key {:?} stands twice in one object", shortened(&key)));
            }
            seen.insert(key);
            members.next_value_seed(Walk { survey: &mut *survey, place })?;
        }
        Ok(())
    }
}
