//! Descriptions of pages, in a sentence or two.

/// Of the page at this path below the site's.
pub(super) fn about(page: &str) -> &'static str {
    let parts: Vec<&str> = page.split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [] => {
            "Capo looks for the system prompt that scores best while every cost stays within its threshold. The button \
             runs a whole study in this tab, on simulated models and without a key."
        }
        ["study"] => {
            "A study is set up here: the examples and the prompt to begin with, what is to be high, which costs have a \
             threshold, and which models answer. What it takes at most stands beside it before anything is asked."
        }
        ["runs"] => {
            "The runs that this browser keeps, and those of your projects on a server: what each reached and spent. \
             They are opened, gone on with, compared and deleted here."
        }
        ["compare"] => {
            "Several runs side by side: what each reached and spent, their rounds in the same figures, and the best \
             prompts of two of them example by example."
        }
        ["run", _] => {
            "A run: the objective and every cost round by round, all prompts on a map of the two, those that are kept, \
             and what happened. While it goes on, its thresholds and multipliers can be changed by hand."
        }
        ["run", _, "candidate", ..] => {
            "The prompts of a run: which was rewritten from which, what changed and by what feedback, and what was said \
             on every example."
        }
        ["run", _, "result"] => {
            "What a run found: its best prompt, whether that keeps all thresholds and on which examples, and how it \
             compares with the seed prompt."
        }
        ["dynamics"] => {
            "How multipliers answer to costs over and under their thresholds: two settings side by side, round by \
             round, on simulated models."
        }
        ["set-up" | "sign-in" | "invitation", ..] => {
            "The way in to the server that this page comes from, which keeps the runs and prompts of a team. What \
             stays in this browser needs no account."
        }
        ["team"] => "Your projects on this server. Runs, data, prompts and keys belong to one each.",
        ["team", "projects", _] => {
            "A project: who takes part in it, its runs, studies and data, the prompts that programs fetch from it, and \
             the keys that its runs are paid with."
        }
        ["team", .., "prompts", _] => {
            "A prompt that programs fetch from the server: its versions, what was measured of them, and which of them \
             each label names."
        }
        ["team", .., "data", _] => {
            "What a project keeps for its studies: a data set with its first rows, or a study."
        }
        ["team", .., "train"] => {
            "A training is set up here: a model learns from the runs of a project to rewrite prompts."
        }
        ["team", .., "trainings", _] => {
            "A training: a model learns from the runs of a project to rewrite prompts. Its checkpoints can write the \
             prompts of later runs."
        }
        ["team", "account"] => {
            "How you sign in to this server, in which browsers, and your tokens for programs."
        }
        ["team", "server"] => {
            "Who has an account on this server, which keys it shares, and what was done on it."
        }
        _ => NOTHING,
    }
}

const NOTHING: &str = "There is no page at this address.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_a_page_that_is_explained() {
        let routes: Vec<&str> = include_str!("app.rs")
            .split("path!(\"")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once('"')?.0))
            .collect();
        assert!(routes.len() > 20, "{routes:?}");
        for route in routes {
            assert_ne!(about(route), NOTHING, "{route}");
        }
        assert_eq!(about("/nowhere"), NOTHING);
    }
}
