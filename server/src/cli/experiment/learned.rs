//! `capo experiment dcapo`: the learned rewriter.

use super::{DCAPO, ExperimentArgs, is_simulated, usual_jobs};
use crate::cli::failure::{Ending, Failure, print};
use crate::experiment::Table;
use crate::experiment::dcapo::{self, DcapoError, Plan};
use crate::stderr::warn;

pub(super) fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let base = args.base(dcapo::STUDY)?;
    if !is_simulated(&base.study) {
        return Err(Failure::usage(format!(
            "{}: `{DCAPO}` makes hundreds of thousands of rollouts, so that every model of its study must be simulated; \
             set provider = \"simulated\" under [models]",
            base.name
        )));
    }
    if args.dry_run {
        return Err(Failure::usage(format!(
            "`{DCAPO}` pays nobody, as its models are simulated; leave --dry-run out"
        )));
    }
    let plan = Plan {
        same_split: args.same_split,
        ..Plan::default()
    };
    let out = args.out(DCAPO);
    let jobs = args.jobs.unwrap_or_else(|| usual_jobs(&base.study));
    let say = |seed: u64, text: &str| warn(&format!("seed {seed}: {text}"));
    let seeds = dcapo::run(&base, &plan, &args.seeds(), jobs, &out, &say)?;
    let page = dcapo::write(&out, &base, &plan, &seeds).map_err(|error| Failure::new(error.to_string()))?;
    let tables = dcapo::report(&base, &plan, &seeds).tables;
    let text: Vec<String> = tables.iter().map(Table::markdown).collect();
    print(&format!(
        "{}\nTables and plot: {}\n",
        text.join("\n"),
        page.display()
    ))?;
    Ok(Ending::Done)
}

impl From<DcapoError> for Failure {
    fn from(error: DcapoError) -> Self {
        match error {
            DcapoError::Session(error) => error.into(),
            error => Self::new(error.to_string()),
        }
    }
}
