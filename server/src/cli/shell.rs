//! `capo completions` and `capo man`: what shells and `man` know of the command line.

use std::path::PathBuf;
use std::{fs, io};

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;
use super::failure::{Ending, Failure, print, print_data};

/// Print a script by which a shell completes `capo`'s commands and options.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell; bash, for one, reads scripts in ~/.local/share/bash-completion/completions.
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write it and one for each command into a folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, such as ~/.local/share/man/man1; made if it is not there.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints the script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Ending, Failure> {
    let mut script: Vec<u8> = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "capo", &mut script);
    print_data(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Done)
}

/// Prints the page, or writes all of them.
pub(crate) fn man(args: &ManArgs) -> Result<Ending, Failure> {
    let Some(folder) = &args.folder else {
        let mut page: Vec<u8> = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        print_data(&String::from_utf8_lossy(&page))?;
        return Ok(Ending::Done);
    };
    let refused = |error: io::Error| Failure::new(format!("{} cannot be written: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(refused)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(refused)?;
    print(&format!("{}\n", folder.join("capo.1").display()))?;
    Ok(Ending::Done)
}
