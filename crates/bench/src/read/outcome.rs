//! What is known about a read, as an outcome of the record.

use std::path::Path;

use flatout_io::operations::Direction;
use flatout_io::{Caching, Kind};
use flatout_measure::case::record;
use flatout_measure::guard::UseOfCpus;
use flatout_measure::overhead::OVERHEAD_SHARE;
use flatout_measure::sampler::{fact::USE_OF_CPUS, note_use_of_cpus};
use flatout_measure::units::percent;
use flatout_measure::{
    Ceiling, EVIDENCE, Evidence, Facts, Key, Label, Measured as MeasuredRow, Outcome, Sample,
    Status, Unit, blank, ceiling, warning,
};

use flatout_sys::{Groups, affinity, filesystem};

use super::limit::{self, Way};
use super::{CacheStart, DigestKind, Limit, Measured, Reader};
use crate::counted;
use crate::fact;
use crate::file_trial::measured::{self, ENGINE_REASON};
use crate::file_trial::{evidence, group_limit};
use crate::workers;

/// Id of the row of a read.
pub const ID: &str = "read/file";
/// Time of the read.
const SECONDS: Key = Key::sum("seconds");

impl Reader {
    /// The row of this read.
    pub fn row(&self) -> Label {
        let state = match self.job.state {
            CacheStart::Cold(_) => "cold",
            CacheStart::Hot | CacheStart::HotAlready => "hot",
            CacheStart::AsItIs => "as_it_is",
        };
        let parameters = measured::parameters(&self.job.path, &self.choice.tuning);
        Label::new(ID, Unit::BytesPerSecond).of(parameters).with("state", state)
    }

    /// A trial for the sampler, with all that is summed over several of them.
    pub fn sample(&self, measured: &Measured) -> Sample {
        let mut sample = measured.sample();
        sample.facts.extend(totals(measured));
        sample
    }

    /// Completes the row with what its last trial found; the figure itself comes from the samples, and
    /// what the row already has of several trials stays.
    pub fn describe(&self, measured: &Measured, row: &mut MeasuredRow<Label>) {
        if measured.engine.is_some() {
            let used = measured.used(self.choice.tuning);
            let parameters = &mut row.row.parameters;
            parameters.set("engine", used.engine.to_string());
            parameters.set("depth", used.depth);
            row.outcome.parameters = parameters.to_json();
        }
        let mut facts = totals(measured).with(ENGINE_REASON, measured.engine_reason(&self.choice));
        // Of a pass that was cut off, nobody could say which bytes the digest covers.
        let digest = measured.xor32.filter(|_| self.job.digest == DigestKind::Xor32);
        // The digest of a pass.
        facts.set_known("digest_xor32", digest.map(|digest| format!("{digest:08x}")));
        match self.job.limit {
            // Bytes that took the time which was asked for.
            Limit::MinTime(_) => facts.set("size_found_bytes", measured.bytes),
            Limit::Duration(ns) => facts.set(fact::ENDED_EARLY, self.how_far(measured, ns)),
            Limit::Blocks if measured.stopped => {
                let text = format!("interrupted after {}", counted(measured.bytes, "byte"));
                facts.set(fact::ENDED_EARLY, text);
            }
            Limit::Blocks => {}
        }
        facts.extend(std::mem::take(&mut row.facts));
        let evidence = self.evidence(&facts);
        let warnings = self.warnings.iter().chain(&measured.warnings).cloned();
        warning::add_all(&mut row.outcome.warnings, warnings.chain(evidence::against(&evidence)));
        facts.set(EVIDENCE, evidence);
        row.facts = facts;
    }

    /// What shows that the bytes of all trials came from where the row has them.
    fn evidence(&self, facts: &Facts) -> Evidence {
        let is_sized = self.source.kind() == Kind::Sized;
        match (self.job.state, self.source.caching()) {
            (CacheStart::Hot | CacheStart::HotAlready, _) => evidence::of_reads(facts, true, None),
            (CacheStart::Cold(_), _) | (_, Caching::Direct) if is_sized => {
                evidence::of_reads(facts, false, self.bottom.ground)
            }
            _ => Evidence::counted(facts, fact::BYTES),
        }
    }

    /// What a time limit has to say: how far, or when the file ended.
    fn how_far(&self, measured: &Measured, limit_ns: u64) -> String {
        let seconds = measured.elapsed_ns as f64 / 1e9;
        let limit = limit_ns as f64 / 1e9;
        let bytes = counted(measured.bytes, "byte");
        if !measured.stopped {
            let what = match self.source.kind() {
                Kind::Sized if self.end_bytes < self.source.length_bytes() => "what was asked for",
                Kind::Sized => "the whole file",
                Kind::Endless | Kind::Stream => "all there was",
            };
            return format!("{what} was read after {seconds:.6} s of {limit} s");
        }
        // Somebody may have stopped it before its time was over.
        let after = match self.job.cancel.is_cancelled() {
            true => format!("{seconds:.6} s of {limit} s"),
            false => format!("{limit} s"),
        };
        let percent = measured.bytes as f64 / self.end_bytes.max(1) as f64 * 100.0;
        let share = match self.source.kind() {
            Kind::Sized => format!(", {percent:.2} % of the file"),
            Kind::Endless | Kind::Stream => String::new(),
        };
        format!("stopped after {after} at {bytes}{share}")
    }

    /// The row of a single trial, during which the CPUs were used so, and there are `cpus`.
    pub fn single(&self, measured: &Measured, use_of_cpus: UseOfCpus, cpus: u32) -> Outcome {
        let mut row = self.unmeasured();
        self.describe(measured, &mut row);
        self.judge_harness(measured, &mut row);
        note_use_of_cpus(&mut row.outcome, &mut row.facts, use_of_cpus, cpus);
        let outcome = &mut row.outcome;
        if let Some(rate) = measured.rate(measured.elapsed_ns) {
            (outcome.median, outcome.n, outcome.samples) = (Some(rate), 1, vec![rate]);
        }
        // Where this process wanted no CPU most of the time it waited for bytes.
        let wanted_ns = use_of_cpus.waited_ns.map(|ns| use_of_cpus.own_ns.saturating_add(ns));
        let is_idle = wanted_ns.is_some_and(|wanted_ns| wanted_ns < use_of_cpus.elapsed_ns / 2);
        if self.source.kind() == Kind::Stream && is_idle {
            outcome.ceiling =
                Some(Ceiling::unknown("what its producer delivers").limited_by("the producer"));
        }
        self.bound(measured, &mut row);
        let outcome = &mut row.outcome;
        if self.job.cancel.is_cancelled() {
            outcome.status = Status::Interrupted;
        }
        if measured.bytes == 0 {
            outcome.warn(warning::EMPTY_FILE, "there was nothing to read, so there is no rate");
        }
        record(vec![row]).pop().unwrap_or_default()
    }

    /// Holds a row with all its facts against what was measured here, and says what limits it. Of a
    /// stream its producer knows.
    pub fn bound(&self, measured: &Measured, row: &mut MeasuredRow<Label>) {
        let [fetched, bytes] =
            [fact::DEVICE_READ_BYTES, fact::BYTES].map(|key| row.facts.number(key));
        let is_held = self.source.kind() == Kind::Sized && row.outcome.median.is_some();
        // Where nobody counts what was fetched, nobody knows what it was that limits it: what a program or a
        // server answers is in no account.
        let is_served = filesystem::of(self.source.file()).is_ok_and(|found| found.is_served());
        let is_counted = !is_served || measured.cached_before_bytes >= Some(self.end_bytes);
        let fetched_ratio = evidence::ratio(fetched, bytes).filter(|_| is_held && is_counted);
        let Some(fetched_ratio) = fetched_ratio else { return };
        let tuning = measured.used(self.choice.tuning);
        let allowed = affinity::allowed_cpu_count();
        let cpus = f64::from(tuning.threads.min(allowed).max(1));
        let used = row.facts.value(USE_OF_CPUS).map(flatout_measure::Value::to_json);
        let own_cpus = used.and_then(|used| used["own_cpus"].as_f64());
        let quota = Groups::discover(Path::new("/")).cpu_quota_cpus();
        let contained = workers::contained(tuning.threads, allowed, quota);
        let had = own_cpus.zip(quota).filter(|_| contained.is_some());
        let is_held_back = had.is_some_and(|(own, quota)| limit::is_held_back(own, quota));
        warning::add_all(&mut row.outcome.warnings, contained);
        let busy_ratio = own_cpus.map(|own| own / cpus);
        let way = Way { tuning, fetched_ratio, busy_ratio, is_held_back };
        // It was measured with a digest: without one a read may be faster.
        let best = self.best.as_ref().filter(|_| self.job.digest == DigestKind::Xor32);
        let limits = if way.is_fetched() { &self.bottom.limits[..] } else { &[] };
        let group = group_limit::of(&mut row.outcome, limits, &row.facts, Direction::Read);
        ceiling::apply(&mut row.outcome, way.ceiling(group, best));
    }

    fn unmeasured(&self) -> MeasuredRow<Label> {
        let row = self.row();
        MeasuredRow { outcome: blank(&row), row, facts: Facts::default(), further: Vec::new() }
    }

    /// The harness's own share, and a warning when it is more than 1 %.
    fn judge_harness(&self, measured: &Measured, row: &mut MeasuredRow<Label>) {
        let each_ns = self.harness_ns_per_block();
        let threads = self.choice.tuning.threads.min(affinity::allowed_cpu_count()).max(1);
        let threads = f64::from(threads);
        let share = each_ns * measured.blocks as f64 / threads / measured.elapsed_ns.max(1) as f64;
        // The harness's own time for a block.
        row.facts.set("harness_ns_per_block", each_ns);
        row.facts.set(fact::OVERHEAD_RATIO, share);
        if share > OVERHEAD_SHARE {
            let text = format!("the loop over blocks takes {} of the time", percent(share));
            row.outcome.warn(warning::OVERHEAD, text);
        }
    }
}

/// What a trial found, as it is summed over several.
fn totals(measured: &Measured) -> Facts {
    // Passes over the file.
    measured
        .facts()
        .with(SECONDS, measured.elapsed_ns as f64 / 1e9)
        .with(Key::sum("passes"), measured.passes)
}

#[cfg(test)]
mod tests {
    use flatout_io::{Engine, Split, Tuning};
    use flatout_measure::evidence::Happened;
    use flatout_sys::cancel::CancelToken;

    use super::super::Job;
    use super::*;

    const TUNING: Tuning = Tuning {
        engine: Engine::Sync,
        caching: Caching::Buffered,
        block_bytes: 4096,
        depth: 1,
        threads: 1,
        split: Split::Contiguous,
    };

    #[test]
    fn a_stream_that_is_waited_for_is_limited_by_its_producer() {
        let job = |path: &str| Job {
            block_count: Some(1),
            ..Job::exactly(path.into(), &TUNING, CacheStart::AsItIs, CancelToken::manual())
        };
        let limiter = |path: &str, waited_ns, own_ns| {
            let reader = Reader::open(job(path)).unwrap();
            let used = UseOfCpus { elapsed_ns: 100, own_ns, waited_ns, ..UseOfCpus::default() };
            let outcome = reader.single(&reader.trial().unwrap(), used, 2);
            outcome.ceiling.map(|ceiling| ceiling.limiter)
        };
        let producer = Some("the producer".to_owned());
        assert_eq!(limiter("/proc/self/stat", Some(20), 20), producer);
        assert_eq!(limiter("/proc/self/stat", Some(40), 20), None, "it waited for a CPU");
        assert_eq!(limiter("/proc/self/stat", Some(0), 90), None, "it copied");
        assert_eq!(limiter("/proc/self/stat", None, 20), None, "nobody knows");
        assert_ne!(limiter("/proc/self/exe", Some(20), 20), producer, "no stream");
    }

    #[test]
    fn what_was_interrupted_before_its_time_says_when() {
        let cancel = CancelToken::manual();
        let job = Job::exactly("/proc/self/exe".into(), &TUNING, CacheStart::AsItIs, cancel);
        let reader = Reader::open(Job { limit: Limit::Duration(10_000_000_000), ..job }).unwrap();
        let measured = Measured {
            bytes: 5000,
            elapsed_ns: 2_500_000_000,
            stopped: true,
            ..Measured::default()
        };
        let told = || reader.how_far(&measured, 10_000_000_000);
        assert!(told().starts_with("stopped after 10 s at 5000 bytes"), "{}", told());
        cancel.cancel();
        assert!(told().starts_with("stopped after 2.500000 s of 10 s at"), "{}", told());
    }

    #[test]
    fn where_nobody_counts_what_was_fetched_no_limit_is_named() {
        let path = "/proc/self/exe".into();
        let job = Job::exactly(path, &TUNING, CacheStart::AsItIs, CancelToken::manual());
        let reader = Reader::open(job).unwrap();
        let limiter = |fetched: Option<u64>| {
            let mut row = reader.unmeasured();
            row.outcome.median = Some(1e9);
            row.facts.set(fact::BYTES, 1000_u64);
            row.facts.set_known(fact::DEVICE_READ_BYTES, fetched);
            reader.bound(&Measured::default(), &mut row);
            row.outcome.ceiling.map(|bound| bound.limiter)
        };
        assert_eq!(limiter(Some(0)).as_deref(), Some("copying out of the page cache"));
        assert_eq!(limiter(None), None);
    }

    #[test]
    fn the_evidence_of_several_trials_is_of_all_of_them() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 5000]).unwrap();
        let state = CacheStart::Hot;
        let job = Job::exactly(file.path().to_owned(), &TUNING, state, CancelToken::manual());
        let reader = Reader::open(job).unwrap();
        let fetched = |bytes: u64| {
            let accounts = Facts::default().with(fact::DEVICE_READ_BYTES, bytes);
            Measured { accounts, ..reader.trial().unwrap() }
        };
        let measured = fetched(0);
        let happened = |outcome: &Outcome| Evidence::of(outcome).unwrap().happened;
        let quiet = UseOfCpus { elapsed_ns: 1_000_000_000, intervals: 1, ..UseOfCpus::default() };
        assert_eq!(happened(&reader.single(&measured, quiet, 2)), Happened::Yes);
        // Others had the CPUs at both ends, and between.
        let second_ns = quiet.elapsed_ns;
        let beside = UseOfCpus {
            own_ns: second_ns / 2,
            waited_ns: Some(second_ns / 2),
            waited_beside_ns: second_ns / 2,
            others_ns: second_ns.cast_signed(),
            beside_others: 2,
            ..quiet
        };
        let is_told = |used| {
            let outcome = reader.single(&measured, used, 2);
            warning::has(&outcome.warnings, warning::LOCAL_LOAD)
        };
        assert!(is_told(beside) && !is_told(quiet));
        // The trials before were fetched from storage, the last was not.
        let before = fetched(5000);
        let samples = [&before, &before, &measured].map(|trial| reader.sample(trial).facts);
        let mut row = MeasuredRow { facts: Facts::merged(samples.iter()), ..reader.unmeasured() };
        reader.describe(&measured, &mut row);
        let outcome = record(vec![row]).pop().unwrap();
        assert_eq!(happened(&outcome), Happened::No);
        let counts = ["bytes", "device_read_bytes", "passes"].map(|key| outcome.fact_count(key));
        assert_eq!(counts, [Some(15_000), Some(10_000), Some(3)]);
        // What the cache held is no sum.
        let held = outcome.fact_number("cached_before_bytes");
        assert_eq!(held, measured.cached_before_bytes.map(|bytes| bytes as f64));
    }
}
