//! A server that draws from the adapters it is handed, played in this process.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use burn_flex::{Flex, FlexDevice};
use burn_tensor::FloatDType;
use capo_core::llm::{CallUsage, FailureKind, LlmError};
use capo_rewriter::decoder::Decoder;
use capo_rewriter::generate::{Generation, GenerationRow};
use capo_rewriter::lora::Adapter;
use capo_rewriter::remote_generation::{Draw, Sampler};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};

/// What a server was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Serve(u64),
    Draw,
}

pub(crate) struct Server {
    model: Decoder<Flex>,
    served: RefCell<Option<PathBuf>>,
    pub(crate) calls: RefCell<Vec<Call>>,
    /// Steps whose adapters it does not take.
    pub(crate) refuses: Option<u64>,
}

impl Server {
    pub(crate) fn new(model: &Path) -> Self {
        Self {
            model: Decoder::from_folder(model, FloatDType::F32, &FlexDevice).expect("loads"),
            served: RefCell::default(),
            calls: RefCell::default(),
            refuses: None,
        }
    }

    fn drawn(&self, row: &GenerationRow, settings: &Generation) -> Draw {
        self.calls.borrow_mut().push(Call::Draw);
        let served = self
            .served
            .borrow()
            .clone()
            .expect("an adapter was served before");
        let adapter =
            Adapter::from_folder(&served, self.model.config(), &FlexDevice).expect("is still there");
        let drawn = self
            .model
            .generate(Some(&adapter), std::slice::from_ref(row), settings);
        let completion = drawn.expect("draws").remove(0);
        Draw {
            tokens: completion.tokens,
            finish: completion.finish,
            usage: CallUsage::default(),
            failed_tries: None,
        }
    }
}

impl Sampler for Server {
    fn serve<'a>(&'a self, step: u64, adapter: &'a Path) -> LocalBoxFuture<'a, Result<(), LlmError>> {
        self.calls.borrow_mut().push(Call::Serve(step));
        if self.refuses == Some(step) {
            let refused = LlmError::failed(FailureKind::Provider, false, "no room for an adapter");
            return ready(Err(refused)).boxed_local();
        }
        self.served.replace(Some(adapter.to_owned()));
        ready(Ok(())).boxed_local()
    }

    fn draw<'a>(
        &'a self,
        row: &'a GenerationRow,
        settings: &'a Generation,
    ) -> LocalBoxFuture<'a, Result<Draw, LlmError>> {
        ready(Ok(self.drawn(row, settings))).boxed_local()
    }
}
