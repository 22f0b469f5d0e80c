//! A conversation between agent, user and world, turn by turn.

use std::rc::Rc;

use capo_core::llm::{AssistantMessage, ChatRequest, FailureKind, Message, Role, ToolSpec};
use capo_core::workload::{RolloutContext, RolloutError};

use super::environment::{Side, World, call_any};
use super::prompts::GREETING;
use super::trajectory::{End, Event, Trajectory};

/// Who takes part, and how long.
pub struct Setting {
    /// The agent's system message.
    pub agent: String,
    /// The system message of the model that plays the user.
    pub user: String,
    /// What the agent is offered.
    pub agent_tools: Rc<[ToolSpec]>,
    /// What the user is offered.
    pub user_tools: Rc<[ToolSpec]>,
    /// Messages exchanged, calls and their results included.
    pub max_steps: u32,
    /// Failed calls.
    pub max_errors: u32,
}

/// A finished conversation.
pub struct Dialogue<W> {
    /// What was said and called.
    pub trajectory: Trajectory,
    /// What it left of the world.
    pub world: W,
    /// Why it ended.
    pub end: End,
    /// Seconds of the agent's model calls.
    pub seconds: f64,
}

/// One side as a model sees it: what it was told and what it witnessed.
struct View {
    side: Side,
    role: Role,
    tools: Rc<[ToolSpec]>,
    messages: Rc<Vec<Message>>,
}

impl View {
    fn new(side: Side, told: String, tools: Rc<[ToolSpec]>) -> Self {
        Self {
            side,
            role: match side {
                Side::Assistant => Role::Agent,
                Side::User => Role::User,
            },
            tools,
            messages: Rc::new(vec![Message::system(told)]),
        }
    }

    fn witness(&mut self, event: &Event) {
        if let Some(message) = event.seen_by(self.side) {
            Rc::make_mut(&mut self.messages).push(message);
        }
    }

    /// Asks the model for its turn: what it said or called, and the seconds that took.
    async fn turn(&self, context: RolloutContext<'_>) -> Result<(Event, f64), RolloutError> {
        let request = ChatRequest {
            messages: Rc::clone(&self.messages),
            tools: Rc::clone(&self.tools),
            ..ChatRequest::default()
        };
        let response = context.chat(self.role, request).await?;
        let answer = response.message;
        if answer.is_empty() {
            return Err(RolloutError::failed(
                FailureKind::Malformed,
                true,
                format!(
                    "the model in the role `{role}` said and called nothing; try again or choose another model for \
                     [models.{role}]",
                    role = self.role
                ),
            ));
        }
        let AssistantMessage { content, tool_calls } = answer;
        let event = if tool_calls.is_empty() {
            Event::Said {
                by: self.side,
                text: content.unwrap_or_default(),
            }
        } else {
            Event::Called {
                by: self.side,
                text: content.filter(|text| !text.trim().is_empty()),
                calls: tool_calls,
            }
        };
        Ok((event, response.usage.seconds))
    }
}

/// Has a conversation in a world that is set up for its task.
///
/// # Errors
/// When a model gives no answer, or the two sides of the world cannot be made to agree.
pub async fn converse<W: World>(
    context: RolloutContext<'_>,
    mut world: W,
    setting: Setting,
) -> Result<Dialogue<W>, RolloutError> {
    let mut agent = View::new(Side::Assistant, setting.agent, setting.agent_tools);
    let mut user = View::new(Side::User, setting.user, setting.user_tools);
    let mut trajectory = Trajectory::default();
    let mut keep = |event: Event, agent: &mut View, user: &mut View| {
        agent.witness(&event);
        user.witness(&event);
        trajectory.0.push(event);
    };
    let greeting = Event::Said {
        by: Side::Assistant,
        text: GREETING.to_owned(),
    };
    keep(greeting, &mut agent, &mut user);
    let mut turn = Side::User;
    let (mut steps, mut errors, mut seconds) = (0, 0, 0.0);
    let end = loop {
        let speaker = match turn {
            Side::Assistant => &agent,
            Side::User => &user,
        };
        let (event, took) = speaker.turn(context).await?;
        if turn == Side::Assistant {
            seconds += took;
        }
        let is_over = event.ends();
        let calls = match &event {
            Event::Called { calls, .. } => calls.clone(),
            _ => Vec::new(),
        };
        keep(event, &mut agent, &mut user);
        steps += 1;
        agree(&mut world)?;
        if calls.is_empty() {
            turn = turn.other();
        } else {
            // What is called is always answered: limits are looked at afterwards.
            for call in calls {
                let result = call_any(&mut world, turn, &call.name, &call.arguments);
                errors += u32::from(result.error);
                let answered = Event::Answered {
                    to: turn,
                    call_id: call.id,
                    content: result.content,
                    error: result.error,
                };
                keep(answered, &mut agent, &mut user);
            }
            steps += 1;
            agree(&mut world)?;
        }
        if errors >= setting.max_errors {
            break End::TooManyErrors;
        }
        if steps >= setting.max_steps {
            break End::MaxSteps;
        }
        if is_over {
            break End::UserStop;
        }
    };
    Ok(Dialogue {
        trajectory,
        world,
        end,
        seconds,
    })
}

/// Makes the two sides of the world agree, as after every step.
fn agree<W: World>(world: &mut W) -> Result<(), RolloutError> {
    world.sync().map_err(|error| {
        RolloutError::failed(
            FailureKind::Tool,
            false,
            format!("the two sides of {} cannot agree: {error}", W::NAME),
        )
    })
}
