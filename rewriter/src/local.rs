//! The policy as a rewriter of a search: [`Llm`] without a server.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use capo_core::llm::{
    AssistantMessage, CallUsage, ChatRequest, ChatResponse, FailureKind, Finish as AnswerFinish, Llm,
    LlmError, Message, RewriteForm,
};
use capo_core::study::suggest;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};

use crate::backend::PolicyBackend;
use crate::error::{FileError, RequestError};
use crate::feedback::LeftOut;
use crate::generate::{Completion, Finish, Generation, GenerationRow};
use crate::policy::Policy;
use crate::remote_generation::{Draw, DrawError, RemoteGeneration};
use crate::stop::Stop;
use crate::template::{RewriteTemplate, TemplateError};
use crate::token_sampling::Sampling;

/// How rewrites are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Drawing {
    /// How each token is drawn.
    pub sampling: Sampling,
    /// Longest rewrite in tokens, ≥ 1.
    pub max_new_tokens: usize,
    /// The most rewrites that are drawn together, ≥ 1. They need memory together; what is drawn does not depend on it.
    pub max_batch: usize,
}

impl Default for Drawing {
    /// From the policy's own distribution, up to 1024 tokens, 64 rewrites together.
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            max_new_tokens: 1024,
            max_batch: 64,
        }
    }
}

impl Drawing {
    /// # Errors
    ///
    /// [`RequestError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), RequestError> {
        let counts = [
            ("max_new_tokens", self.max_new_tokens),
            ("max_batch", self.max_batch),
        ];
        if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(RequestError::Setting {
                name,
                value: 0.0,
                range: "1 or more",
            });
        }
        self.sampling.check()
    }

    /// # Errors
    ///
    /// As [`check`](Self::check), or the longest rewrite leaves no room for a request in a model's context.
    pub fn check_for(&self, context: usize) -> Result<(), RequestError> {
        self.check()?;
        if self.max_new_tokens < context {
            return Ok(());
        }
        Err(RequestError::NoRoomForPrompts {
            new: self.max_new_tokens,
            context,
        })
    }
}

/// A rewrite as it was drawn: what a policy learns from. It has no tokens where the model has no room for the
/// request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The seed it was drawn with.
    pub seed: u64,
    /// Tokens of the request.
    pub prompt: Vec<u32>,
    /// Tokens of the rewrite, the one that ends it included.
    pub completion: Vec<u32>,
    /// Log-probability of each of them under the policy that drew it; none of a rewrite that was drawn elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<f32>>,
}

impl Sample {
    /// Whether there was room to draw a rewrite.
    pub fn is_drawn(&self) -> bool {
        !self.completion.is_empty()
    }

    /// Tokens of request and rewrite.
    pub fn length(&self) -> usize {
        self.prompt.len() + self.completion.len()
    }
}

/// A policy that rewrites prompts. Rewrites that are asked for together are drawn together, so that siblings
/// compute their common request once.
pub struct LocalRewriter<B: PolicyBackend> {
    name: String,
    policy: RefCell<Policy<B>>,
    /// Rounds that the policy learned from.
    step: Cell<u64>,
    template: RewriteTemplate,
    drawing: Drawing,
    waiting: RefCell<Vec<Waiting>>,
    samples: RefCell<HashMap<u64, Sample>>,
    /// Where samples are kept until they are learned from.
    log: Option<PathBuf>,
    /// Who draws in its place, and the folder of the model that the policy's adapter belongs to.
    elsewhere: Option<(RemoteGeneration, PathBuf)>,
    told_cuts: ToldCuts,
    stop: Stop,
}

/// A rewriter whose requests may each be drawn in a way of their own.
pub trait DrawnAsAsked: Llm {
    /// How a request is drawn that says nothing of it.
    fn drawing(&self) -> Drawing;

    /// Answers like [`Llm::chat`], drawn in another way.
    fn draw_as(
        &self,
        request: ChatRequest,
        drawing: Drawing,
    ) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>>;
}

/// Is told what of a request's feedback had no room in the model's context.
pub type ToldCuts = Box<dyn Fn(LeftOut)>;

struct Waiting {
    row: GenerationRow,
    drawing: Drawing,
    answer: oneshot::Sender<Result<Drawn, LlmError>>,
}

/// A rewrite with its share of the time that its batch took, in seconds.
struct Drawn(Completion, f64);

impl<B: PolicyBackend> LocalRewriter<B> {
    /// A rewriter by the name that errors and screens show.
    pub fn new(
        name: impl Into<String>,
        policy: Policy<B>,
        template: RewriteTemplate,
        drawing: Drawing,
    ) -> Self {
        Self {
            name: name.into(),
            policy: RefCell::new(policy),
            step: Cell::new(0),
            template,
            drawing,
            waiting: RefCell::default(),
            samples: RefCell::default(),
            log: None,
            elsewhere: None,
            told_cuts: Box::new(|_| ()),
            stop: Stop::default(),
        }
    }

    /// Tells of each request whose feedback was cut to fit.
    pub fn telling_cuts(mut self, told_cuts: ToldCuts) -> Self {
        self.told_cuts = told_cuts;
        self
    }

    /// Ends rewrites under way, and what is learned of them, once `stop` says so. Nothing is kept of either.
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Lets somebody else draw the rewrites, from the policy's adapter as it is when a rewrite is asked for. `source` is
    /// the folder of the model that the adapter belongs to.
    ///
    /// # Errors
    ///
    /// [`RequestError::WholeElsewhere`] when the policy is no adapter.
    pub fn drawn_elsewhere(
        mut self,
        elsewhere: RemoteGeneration,
        source: &Path,
    ) -> Result<Self, RequestError> {
        if self.policy.get_mut().adapter().is_none() {
            return Err(RequestError::WholeElsewhere);
        }
        self.elsewhere = Some((elsewhere, source.to_owned()));
        Ok(self)
    }

    /// Keeps every rewrite in a file, JSON Lines, before it is answered, and knows those that the file holds
    /// already. A torn last line belongs to an answer that nobody got, and is dropped.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or a line of it is no sample.
    pub fn keeping_samples(mut self, file: &Path) -> Result<Self, FileError> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(FileError::io(file)(error)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        for (number, line) in (1..).zip(whole.lines()) {
            let sample: Sample = serde_json::from_str(line).map_err(|why| {
                let why = suggest(&why.to_string());
                FileError::content(file, format!("line {number} is no sample: {why}"))
            })?;
            self.samples.get_mut().insert(sample.seed, sample);
        }
        if whole.len() < text.len() {
            crate::store::write_whole(file, |path| {
                std::fs::write(path, whole).map_err(FileError::io(path))
            })?;
        }
        self.log = Some(file.to_owned());
        Ok(self)
    }

    /// The policy that answers.
    pub fn policy(&self) -> Ref<'_, Policy<B>> {
        self.policy.borrow()
    }

    /// Answers with another policy from now on, which learned from so many rounds.
    pub(crate) fn replace(&self, policy: Policy<B>, step: usize) {
        *self.policy.borrow_mut() = policy;
        self.step.set(step as u64);
    }

    /// What ends it before its time.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Temperature of the log-probabilities of samples.
    pub(crate) fn temperature(&self) -> f64 {
        f64::from(self.drawing.sampling.logprob_temperature())
    }

    /// The rewrite that was drawn with a seed, if it is still known.
    pub(crate) fn sample(&self, seed: u64) -> Option<Sample> {
        self.samples.borrow().get(&seed).cloned()
    }

    /// Forgets all samples: they were learned from.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn forget_samples(&self) -> Result<(), FileError> {
        self.samples.borrow_mut().clear();
        match &self.log {
            Some(log) => {
                crate::store::write_whole(log, |path| std::fs::write(path, "").map_err(FileError::io(path)))
            }
            None => Ok(()),
        }
    }

    fn keep(&self, samples: Vec<Sample>) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut lines = String::new();
        for sample in &samples {
            lines.push_str(&serde_json::to_string(sample)?);
            lines.push('\n');
        }
        let mut file: File = OpenOptions::new().create(true).append(true).open(log)?;
        file.write_all(lines.as_bytes())?;
        file.sync_data()?;
        let kept = samples.into_iter().map(|sample| (sample.seed, sample));
        self.samples.borrow_mut().extend(kept);
        Ok(())
    }

    fn kept(&self, samples: Vec<Sample>) -> Result<(), LlmError> {
        let kept = self.keep(samples);
        kept.map_err(|why| self.failed(&format!("its samples cannot be kept: {why}")))
    }

    fn generation(&self, drawing: Drawing) -> Generation {
        Generation {
            sampling: drawing.sampling,
            max_new_tokens: drawing.max_new_tokens,
            stop_tokens: self.template.stop_tokens().to_vec(),
            share_prefixes: true,
        }
    }

    /// Draws all rewrites that wait.
    fn draw(&self) {
        let mut waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        while let Some((batch, drawing)) = next_batch(&mut waiting) {
            self.draw_together(batch, drawing);
        }
    }

    fn draw_together(&self, waiting: Vec<Waiting>, drawing: Drawing) {
        let rows: Vec<GenerationRow> = waiting.iter().map(|one| one.row.clone()).collect();
        let started = Instant::now();
        let policy = self.policy.borrow();
        let drawn =
            policy
                .decoder()
                .generate_until(policy.adapter(), &rows, &self.generation(drawing), &self.stop);
        let seconds = started.elapsed().as_secs_f64() / rows.len().max(1) as f64;
        let drawn = drawn.map_err(|why| match why {
            RequestError::Interrupted => LlmError::Interrupted {
                usage: CallUsage::default(),
            },
            why => self.failed(&why),
        });
        let drawn = drawn.and_then(|drawn| {
            let sample = |(row, completion): (&GenerationRow, &Completion)| Sample {
                seed: row.seed,
                prompt: row.prompt.clone(),
                completion: completion.tokens.clone(),
                logprobs: Some(completion.logprobs.clone()),
            };
            self.kept(rows.iter().zip(&drawn).map(sample).collect())?;
            Ok(drawn)
        });
        for (index, Waiting { answer, .. }) in waiting.into_iter().enumerate() {
            let own = drawn.as_ref().map(|drawn| Drawn(drawn[index].clone(), seconds));
            // Whoever asked may be gone.
            let _ = answer.send(own.map_err(Clone::clone));
        }
    }

    fn failed(&self, why: &impl ToString) -> LlmError {
        let message = format!("{}: {}", self.name, why.to_string());
        LlmError::failed(FailureKind::Provider, false, message)
    }

    /// Keeps that nothing was drawn with a seed.
    fn had_no_room(&self, seed: u64, error: LlmError) -> LlmError {
        let nothing = Sample {
            seed,
            prompt: Vec::new(),
            completion: Vec::new(),
            logprobs: Some(Vec::new()),
        };
        self.kept(vec![nothing]).err().unwrap_or(error)
    }

    async fn answer(&self, request: ChatRequest, drawing: Drawing) -> Result<ChatResponse, LlmError> {
        drawing.check().map_err(|why| self.failed(&why))?;
        let [Message::User { content }] = &request.messages[..] else {
            return Err(self.failed(&"it rewrites prompts and takes part in no other conversation"));
        };
        let prompt = self.template.prompt_of_text(content, drawing.max_new_tokens);
        let prompt = prompt.map_err(|why| match why {
            TemplateError::Overflow { .. } => {
                let error = format!("{}: {why}", self.name);
                let error = LlmError::failed(FailureKind::ContextLength, false, error);
                self.had_no_room(request.seed.unwrap_or_default(), error)
            }
            other => self.failed(&other),
        })?;
        if !prompt.left_out.is_nothing() {
            (self.told_cuts)(prompt.left_out);
        }
        let row = GenerationRow {
            prompt: prompt.tokens,
            seed: request.seed.unwrap_or_default(),
        };
        let drawn = match &self.elsewhere {
            Some((elsewhere, source)) => self.drawn_by(elsewhere, source, row, drawing).await?,
            None => self.drawn_here(row, drawing).await?,
        };
        let text = self
            .template
            .child(&drawn.tokens)
            .map_err(|why| self.failed(&why))?;
        Ok(ChatResponse {
            message: AssistantMessage {
                content: Some(text),
                tool_calls: Vec::new(),
            },
            finish: match drawn.finish {
                Finish::Stop => AnswerFinish::Stop,
                Finish::Length => AnswerFinish::Length,
            },
            usage: drawn.usage,
            failed_tries: drawn.failed_tries,
        })
    }

    /// Draws a rewrite together with those that wait.
    async fn drawn_here(&self, row: GenerationRow, drawing: Drawing) -> Result<Draw, LlmError> {
        let input_tokens = row.prompt.len() as u64;
        let (sender, answer) = oneshot::channel();
        self.waiting.borrow_mut().push(Waiting {
            row,
            drawing,
            answer: sender,
        });
        // Whoever else asks at this moment asks before this goes on.
        once_pending().await;
        if !self.waiting.borrow().is_empty() {
            self.draw();
        }
        let drawn = answer.await.map_err(|_| self.failed(&"its batch was given up"))?;
        let Drawn(completion, seconds) = drawn?;
        Ok(Draw {
            usage: CallUsage {
                input_tokens,
                output_tokens: completion.tokens.len() as u64,
                usd: Some(0.0),
                seconds,
            },
            tokens: completion.tokens,
            finish: completion.finish,
            failed_tries: None,
        })
    }

    /// Lets somebody else draw a rewrite from the policy's adapter.
    async fn drawn_by(
        &self,
        elsewhere: &RemoteGeneration,
        source: &Path,
        row: GenerationRow,
        drawing: Drawing,
    ) -> Result<Draw, LlmError> {
        let save = |folder: &Path| self.policy.borrow().save(folder, source);
        let generation = self.generation(drawing);
        let drawn = elsewhere.draw(self.step.get(), save, &row, &generation);
        let drawn = drawn.await.map_err(|why| match why {
            DrawError::File(why) => self.failed(&format!("its adapter cannot be handed over: {why}")),
            DrawError::Sampler(
                why @ LlmError::Failed {
                    kind: FailureKind::ContextLength,
                    ..
                },
            ) => self.had_no_room(row.seed, why),
            DrawError::Sampler(why) => why,
        })?;
        let vocabulary = self.policy.borrow().config().vocabulary;
        if let Some(&token) = drawn.tokens.iter().find(|token| **token as usize >= vocabulary) {
            let other = format!(
                "token {token} was drawn, and its vocabulary has {vocabulary}: the server's model must be the one that learns"
            );
            return Err(self.failed(&other));
        }
        self.kept(vec![Sample {
            seed: row.seed,
            prompt: row.prompt,
            completion: drawn.tokens.clone(),
            logprobs: None,
        }])?;
        Ok(drawn)
    }
}

impl<B: PolicyBackend> Llm for LocalRewriter<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn rewrite_form(&self) -> RewriteForm {
        RewriteForm::Learned
    }

    fn chat(&self, request: ChatRequest) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.answer(request, self.drawing).boxed_local()
    }
}

impl<B: PolicyBackend> DrawnAsAsked for LocalRewriter<B> {
    fn drawing(&self) -> Drawing {
        self.drawing
    }

    fn draw_as(
        &self,
        request: ChatRequest,
        drawing: Drawing,
    ) -> LocalBoxFuture<'_, Result<ChatResponse, LlmError>> {
        self.answer(request, drawing).boxed_local()
    }
}

/// Lets whoever else is ready go on first.
async fn once_pending() {
    let mut is_first = true;
    let mut pause = pin!(futures::future::poll_fn(|context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }));
    pause.as_mut().await;
}

/// Takes rewrites off those that wait: as many as may be drawn together with the first, in the same way.
fn next_batch(waiting: &mut Vec<Waiting>) -> Option<(Vec<Waiting>, Drawing)> {
    let drawing = waiting.first()?.drawing;
    let same = waiting.extract_if(.., |one| one.drawing == drawing);
    Some((same.take(drawing.max_batch).collect(), drawing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_what_is_drawn_alike_and_no_more_than_may_be_drawn_together() {
        let two = Drawing {
            max_batch: 2,
            ..Drawing::default()
        };
        let short = Drawing {
            max_new_tokens: 8,
            ..two
        };
        let waiting = |(seed, drawing)| Waiting {
            row: GenerationRow {
                prompt: vec![1],
                seed,
            },
            drawing,
            answer: oneshot::channel().0,
        };
        let mut left: Vec<Waiting> = (0..).zip([two, short, two, two, short]).map(waiting).collect();
        let mut batches = Vec::new();
        while let Some((batch, drawing)) = next_batch(&mut left) {
            let seeds: Vec<u64> = batch.iter().map(|one| one.row.seed).collect();
            batches.push((seeds, drawing));
        }
        assert_eq!(batches, [(vec![0, 2], two), (vec![1, 4], short), (vec![3], two)]);
    }
}
