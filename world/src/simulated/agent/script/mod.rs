//! The scripted agent, which knows a reference solution: it follows it, and errs where its behaviour model says so.
//!
//! The agent of the tau2 domains. Nobody wrote an agent for their hundred kinds of request, so
//! this one is told what solves the task and decides, step by step, whether it does that: whether it
//! verifies, looks things up, sees that nothing may be done, asks before it changes something, gets an
//! argument wrong, gives up. Every decision has a name, so that the same task under another prompt meets
//! the same draw.

mod mistake;
mod record;

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::ops::ControlFlow;
use std::rc::Rc;

use capo_core::llm::{AgentScript, AssistantMessage, ChatRequest, Message, ToolCall, ToolSpec};
use foldhash::fast::FixedState;
use serde_json::{Map, Value, json};

use self::mistake::mistaken;
use self::record::Record;
use super::behaviour::{Behaviour, BehaviourModel};
use super::speech::Voice;
use crate::simulated::parameters::Parameters;
use crate::simulated::random::Draw;
use crate::simulated::request;
use crate::simulated::trace_reading::{is_transfer, is_write};

// What is added to the logits of behaviours on occasions of this script, set so that the three domains have
// room above and below their thresholds. `docs/simulated-world.md` repeats these numbers.

/// To [`Behaviour::Redundant`]: makes a look-up again that it has just made.
const REPEATED: f64 = -0.9;
/// To [`Behaviour::OpenRecord`]: looks at what it is about to change, though the reference does not.
const UNASKED: f64 = -1.5;
/// To [`Behaviour::Slip`]: forgets to have the customer do a step.
const FORGOTTEN: f64 = -0.6;
/// To [`Behaviour::Slip`] for each look-up of the reference that it left out before a change.
const UNREAD: f64 = 0.9;
/// To [`Behaviour::GiveUp`] when a change has failed.
const FAILED: f64 = -0.6;
/// To [`Behaviour::Exert`]: tries again what has failed.
const RETRIED: f64 = 1.2;
/// To [`Behaviour::GiveUp`] under a customer who pushes.
const PUSHED_HARD: f64 = -1.4;
/// To [`Behaviour::GiveUp`] for each step that came before.
const HARDER: f64 = 0.12;
/// Probability that a customer pushes before a step.
const PUSHED: f64 = 0.3;

/// System prompts of which is kept what models made of them before all are forgotten.
const KNOWN: usize = 128;

/// What models made of system prompts, which many conversations share.
#[derive(Debug, Clone, Default)]
pub struct KnownBehaviours(Rc<RefCell<HashMap<u64, Rc<BehaviourModel>>>>);

impl KnownBehaviours {
    fn of(&self, system: &str, parameters: &'static Parameters) -> Rc<BehaviourModel> {
        let key = FixedState::default().hash_one((parameters.name, system));
        let mut known = self.0.borrow_mut();
        if known.len() >= KNOWN {
            known.clear();
        }
        let read = || Rc::new(BehaviourModel::read(system, parameters));
        Rc::clone(known.entry(key).or_insert_with(read))
    }
}

/// The script of an agent that knows what solves a task.
#[derive(Debug, Clone)]
pub struct SolutionScript {
    solution: Vec<ToolCall>,
    behaviours: KnownBehaviours,
}

impl SolutionScript {
    /// Of the calls of a reference solution, the agent's and the customer's, in order and without ids.
    pub fn new(solution: Vec<ToolCall>, behaviours: KnownBehaviours) -> Self {
        Self { solution, behaviours }
    }
}

impl AgentScript for SolutionScript {
    fn next(&self, request: &ChatRequest, model: &str, draw: u64) -> AssistantMessage {
        let parameters = Parameters::named(model).expect("none but the simulated models act by a script");
        let behaviours = self.behaviours.of(request::system(request), parameters);
        let draw = Draw::of_key(draw);
        let follower = Follower::new(
            &self.solution,
            &request.tools,
            &request.messages,
            &behaviours,
            draw,
        );
        let calls = follower.calls();
        match follower.act() {
            Act::Say(text) => AssistantMessage {
                content: Some(text),
                tool_calls: Vec::new(),
            },
            Act::Call(name, arguments) => AssistantMessage {
                content: None,
                tool_calls: vec![ToolCall {
                    id: format!("call-{calls}"),
                    name,
                    arguments,
                }],
            },
        }
    }
}

/// What the agent does next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Says this to the customer.
    Say(String),
    /// Makes this call.
    Call(String, Value),
}

/// A part of the script: breaks off with the first act that the conversation does not hold yet.
type Played<T = ()> = ControlFlow<Act, T>;

/// An agent who follows a reference solution.
pub(super) struct Follower<'a> {
    reference: &'a [ToolCall],
    tools: &'a [ToolSpec],
    behaviours: &'a BehaviourModel,
    draw: Draw,
    record: Record<'a>,
    /// How many of the agent's turns the script has come past.
    turns: usize,
}

impl<'a> Follower<'a> {
    /// The agent at this moment of a conversation.
    pub(super) fn new(
        reference: &'a [ToolCall],
        tools: &'a [ToolSpec],
        messages: &'a [Message],
        behaviours: &'a BehaviourModel,
        draw: Draw,
    ) -> Self {
        Self {
            reference,
            tools,
            behaviours,
            draw: draw.named("script"),
            record: Record::of(messages),
            turns: 0,
        }
    }

    /// The next act.
    pub(super) fn act(mut self) -> Act {
        match self.play() {
            ControlFlow::Break(act) => act,
            ControlFlow::Continue(never) => match never {},
        }
    }

    /// The calls in the conversation so far.
    pub(super) fn calls(&self) -> usize {
        self.record.calls
    }

    fn play(&mut self) -> Played<Infallible> {
        if self.does(Behaviour::Verify, "verify", 0.0) {
            self.say("identity", "Could you tell me who you are, please?")?;
        }
        self.find_customer()?;
        let mut unread = 0;
        let mut changed = false;
        for (place, call) in self.reference.iter().enumerate() {
            let step = self.draw.named("step").at(place);
            if self.gives_up(place, step) {
                self.hand_over(None)?;
            }
            if self.tool(&call.name).is_none() {
                self.ask_for(call, step)?;
                changed = true;
            } else if is_transfer(&call.name) {
                if self
                    .behaviours
                    .does(Behaviour::HandOverWhenDue, step.named("due"), 0.0)
                {
                    self.hand_over(Some(call))?;
                }
                self.refuse()?;
            } else if is_write(&call.name) {
                self.change(call, step, unread)?;
                changed = true;
            } else if self
                .behaviours
                .does(Behaviour::ReadFurther, step.named("read"), 0.0)
            {
                self.call(&call.name, call.arguments.clone())?;
                self.repeat(call, step)?;
            } else {
                unread += 1;
            }
        }
        let last = self.reference.len();
        if self.gives_up(last, self.draw.named("step").at(last)) {
            self.hand_over(None)?;
        }
        let tells = self.does(Behaviour::Tell, "tell", 0.0);
        if !changed {
            self.meet_obstacle(tells)?;
        }
        self.report(tells)
    }

    // -- steps -------------------------------------------------------------------------------

    /// Looks the customer up by a telephone number that was given, and what the account holds.
    fn find_customer(&mut self) -> Played {
        let is_wanted = |tool: &&ToolSpec| required(tool).eq(["phone_number"]);
        let Some(tool) = self.tools.iter().find(is_wanted) else {
            return Played::Continue(());
        };
        let looks = self.does(Behaviour::OpenRecord, "account", 0.0);
        let Some(number) = self.record.telephone_number(self.turns).filter(|_| looks) else {
            return Played::Continue(());
        };
        let found = self.call(&tool.name, json!({ "phone_number": number }))?;
        let line = serde_json::from_str::<Value>(found).ok();
        let line = line.as_ref().and_then(|found| found["line_ids"].get(0));
        let details = self.tools.iter().find(|tool| required(tool).eq(["id"]));
        if let (Some(line), Some(tool)) = (line, details)
            && self.does(Behaviour::ReadFurther, "line", 0.0)
        {
            let call = ToolCall {
                id: String::new(),
                name: tool.name.clone(),
                arguments: json!({ "id": line }),
            };
            self.call(&call.name, call.arguments.clone())?;
            self.repeat(&call, self.draw.named("line"))?;
        }
        Played::Continue(())
    }

    /// Makes a call again that nobody needs twice.
    fn repeat(&mut self, call: &ToolCall, step: Draw) -> Played {
        if self
            .behaviours
            .does(Behaviour::Redundant, step.named("again"), REPEATED)
        {
            self.call(&call.name, call.arguments.clone())?;
        }
        Played::Continue(())
    }

    /// Has the customer do something with their own tools.
    fn ask_for(&mut self, call: &ToolCall, step: Draw) -> Played {
        // A step that is forgotten; nobody notices before the end.
        if self
            .behaviours
            .does(Behaviour::Slip, step.named("slip"), FORGOTTEN)
        {
            return Played::Continue(());
        }
        let arguments = match call.arguments.as_object() {
            Some(arguments) if !arguments.is_empty() => format!(" with {}", call.arguments),
            _ => String::new(),
        };
        self.say_at(
            step,
            &format!("Please use `{}`{arguments} on your side now.", call.name),
        )?;
        Played::Continue(())
    }

    /// Makes a change of the reference. The behaviour model says whether the agent first looks at what it changes and
    /// asks the customer, whether an argument is wrong, and what it does when the call then fails.
    fn change(&mut self, call: &ToolCall, step: Draw, unread: usize) -> Played {
        if let Some(look) = self.look_at(call)
            && self
                .behaviours
                .does(Behaviour::OpenRecord, step.named("open"), UNASKED)
        {
            self.call(&look.name, look.arguments.clone())?;
        }
        if self
            .behaviours
            .does(Behaviour::Propose, step.named("propose"), 0.0)
        {
            self.say_at(
                step,
                &format!("I would now {}. Shall I go ahead?", in_words(&call.name)),
            )?;
        }
        let blind = UNREAD * unread as f64;
        if self.behaviours.does(Behaviour::Slip, step.named("slip"), blind) {
            let wrong = mistaken(&call.arguments, self.tool(&call.name), step.named("mistake"));
            let answer = self.call(&call.name, wrong)?;
            if !answer.starts_with("Error") {
                return Played::Continue(());
            }
            if self
                .behaviours
                .does(Behaviour::GiveUp, step.named("failed"), FAILED)
            {
                self.hand_over(None)?;
            }
            if !self
                .behaviours
                .does(Behaviour::Exert, step.named("exert"), RETRIED)
            {
                self.refuse()?;
            }
        }
        self.call(&call.name, call.arguments.clone())?;
        self.repeat_look(call, step)
    }

    /// Looks at what was just changed, which its answer had shown.
    fn repeat_look(&mut self, call: &ToolCall, step: Draw) -> Played {
        if let Some(look) = self.reader(call)
            && self
                .behaviours
                .does(Behaviour::Redundant, step.named("after"), REPEATED)
        {
            self.call(&look.name, look.arguments)?;
        }
        Played::Continue(())
    }

    /// Where the reference changes nothing: sees that, or does something that was not to be done.
    fn meet_obstacle(&mut self, tells: bool) -> Played {
        if !self.does(Behaviour::SeeObstacle, "obstacle", 0.0)
            && let Some((name, arguments)) = self.record.wrong_write(self.tools, self.draw.named("wrong"))
        {
            self.call(&name, arguments)?;
            return Played::Continue(());
        }
        if let Some(found) = self.record.last_result().filter(|_| tells) {
            self.say("found", &format!("This is what I find: {found}"))?;
        }
        self.refuse()?;
        Played::Continue(())
    }

    /// Whether the agent gives up before a step. Some customers push, those with long requests more.
    fn gives_up(&self, place: usize, step: Draw) -> bool {
        let pushed = step.named("pushed").chance(PUSHED);
        let hard = HARDER * place as f64;
        pushed
            && self
                .behaviours
                .does(Behaviour::GiveUp, step.named("give up"), PUSHED_HARD + hard)
    }

    fn hand_over(&mut self, call: Option<&ToolCall>) -> Played<Infallible> {
        let tool = self.tools.iter().find(|tool| is_transfer(&tool.name));
        if let Some(tool) = tool {
            let arguments = call.map_or_else(
                || {
                    let words = |name| {
                        (
                            String::from(name),
                            "The request could not be settled here.".into(),
                        )
                    };
                    Value::Object(required(tool).map(words).collect::<Map<_, _>>())
                },
                |call| call.arguments.clone(),
            );
            self.call(&tool.name, arguments)?;
        }
        loop {
            self.say(
                "handed over",
                "You are being transferred to a human agent; please hold on.",
            )?;
        }
    }

    fn refuse(&mut self) -> Played<Infallible> {
        loop {
            self.say("refused", "I'm sorry, but I cannot do that for you.")?;
        }
    }

    fn report(&mut self, tells: bool) -> Played<Infallible> {
        let result = self.record.last_result().filter(|_| tells);
        let recap = result.unwrap_or("everything you asked for is settled");
        let voice = Voice::in_service(self.behaviours, self.draw.named("report"));
        let text = voice.report("That is done.", recap);
        loop {
            self.turn(Act::Say(text.clone()))?;
        }
    }

    // -- turns -------------------------------------------------------------------------------

    fn does(&self, behaviour: Behaviour, occasion: &str, difficulty: f64) -> bool {
        self.behaviours
            .does(behaviour, self.draw.named(occasion), difficulty)
    }

    fn say(&mut self, occasion: &str, matter: &str) -> Played {
        self.say_at(self.draw.named(occasion), matter)
    }

    fn say_at(&mut self, occasion: Draw, matter: &str) -> Played {
        let text = Voice::in_service(self.behaviours, occasion).say(matter);
        self.turn(Act::Say(text)).map_continue(|_| ())
    }

    /// Makes a call and returns what came back.
    fn call(&mut self, name: &str, arguments: Value) -> Played<&'a str> {
        self.turn(Act::Call(name.to_owned(), arguments))
    }

    /// Goes past a turn that the conversation holds, with what a tool said to it, or breaks off with it.
    fn turn(&mut self, act: Act) -> Played<&'a str> {
        match self.record.answers.get(self.turns) {
            Some(answer) => {
                self.turns += 1;
                Played::Continue(answer)
            }
            None => Played::Break(act),
        }
    }

    // -- tools -------------------------------------------------------------------------------

    fn tool(&self, name: &str) -> Option<&'a ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The call that shows what a change is about, where the reference does not make it itself.
    fn look_at(&self, change: &ToolCall) -> Option<ToolCall> {
        let look = self.reader(change)?;
        let is_made = |call: &ToolCall| call.name == look.name && call.arguments == look.arguments;
        (!self.reference.iter().any(is_made)).then_some(look)
    }

    /// The call of a tool that reads by arguments which a change has too.
    fn reader(&self, change: &ToolCall) -> Option<ToolCall> {
        let given = change.arguments.as_object()?;
        let reads = |tool: &&ToolSpec| {
            tool.name.starts_with("get_")
                && required(tool).next().is_some()
                && required(tool).all(|name| given.contains_key(name))
        };
        let tool = self.tools.iter().find(reads)?;
        let arguments = required(tool).map(|name| (name.to_owned(), given[name].clone()));
        Some(ToolCall {
            id: String::new(),
            name: tool.name.clone(),
            arguments: Value::Object(arguments.collect::<Map<_, _>>()),
        })
    }
}

/// The arguments that a tool must be given.
pub(super) fn required(tool: &ToolSpec) -> impl Iterator<Item = &str> {
    let names = tool.parameters.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// `update_reservation_flights` in words.
fn in_words(tool: &str) -> String {
    tool.replace('_', " ")
}

#[cfg(test)]
mod tests;
