//! Routes, and what all pages share.

use leptos::prelude::*;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::path;

use super::address::base;
use super::broken::say_when_broken;
use super::connectivity::Connectivity;
use super::drop_target::DropTarget;
use super::focus::follow_address;
use super::foot::Foot;
use super::handover::{HandedFile, Handover};
use super::imports::Imports;
use super::keys::{KeysShown, TabKeys};
use super::keys_dialog::KeysDialog;
use super::remember::{KeptKeys, KeptKeysDialogs};
use super::shortcuts::{ShortcutKeys, Shortcuts};
use super::theme::Theme;
use super::top::{ReportTop, Top};
use crate::charts::marks::Hatch;
use crate::components::{Glossary, GlossaryDialog};
use crate::live::Runs;
use crate::pages::candidate::CandidatePage;
use crate::pages::compare::ComparePage;
use crate::pages::dynamics::DynamicsPage;
use crate::pages::live::LivePage;
use crate::pages::not_found::NotFound;
use crate::pages::result::ResultPage;
use crate::pages::runs::RunsPage;
use crate::pages::study::{StudyPage, forget_with_the_team};
use crate::pages::team::{
    AccountPage, DataSetPage, InvitationPage, NewTrainingPage, ProjectPage, ProjectsPage, PromptPage,
    ReturnPage, ServerPage, SetUpPage, SignInPage, TrainingPage,
};
use crate::pages::welcome::WelcomePage;
use crate::storage::is_report;
use crate::team::Team;

/// Mounts the page.
pub fn start() {
    say_when_broken();
    leptos::mount::mount_to_body(App);
    // Says to whoever measures or tests that the page can be used.
    let root = document().document_element();
    if let Some(root) = root {
        // Fails for no element.
        let _ = root.set_attribute("data-ready", "true");
    }
}

/// Inside of the router, whose address it follows.
#[component]
fn FocusFollower() -> impl IntoView {
    follow_address();
}

/// Everything.
#[component]
pub fn App() -> impl IntoView {
    let team = Team::default();
    provide_context(team);
    provide_context(Runs::new(team));
    forget_with_the_team(team);
    provide_context(Imports::default());
    provide_context(Handover::default());
    provide_context(HandedFile::default());
    provide_context(TabKeys::default());
    provide_context(KeysShown(RwSignal::new(false)));
    provide_context(KeptKeys::default());
    provide_context(Theme::default());
    provide_context(Shortcuts::default());
    provide_context(Glossary::default());
    view! {
        <a class="skip" href="#main" rel="external">"Skip to content"</a>
        <Hatch/>
        <Router base=base()>
            <FocusFollower/>
            <Show when=is_report fallback=|| view! { <Top/> }>
                <ReportTop/>
            </Show>
            <Connectivity/>
            <main id="main" tabindex="-1">
                <Show when=is_report fallback=|| view! { <Pages/> }>
                    <PagesOfReport/>
                </Show>
            </main>
            <Foot/>
            <ShortcutKeys/>
            <GlossaryDialog/>
            <Show when=|| !is_report()>
                <DropTarget/>
                <KeysDialog/>
                <KeptKeysDialogs/>
            </Show>
        </Router>
    }
}

#[component]
fn Pages() -> impl IntoView {
    view! {
        <Routes fallback=NotFound>
            <Route path=path!("/") view=WelcomePage/>
            <Route path=path!("/study") view=StudyPage/>
            <Route path=path!("/runs") view=RunsPage/>
            <Route path=path!("/compare") view=ComparePage/>
            <Route path=path!("/run/:run") view=LivePage/>
            <Route path=path!("/run/:run/candidate/:candidate?") view=CandidatePage/>
            <Route path=path!("/run/:run/result") view=ResultPage/>
            <Route path=path!("/dynamics") view=DynamicsPage/>
            <Route path=path!("/set-up") view=SetUpPage/>
            <Route path=path!("/sign-in") view=SignInPage/>
            <Route path=path!("/sign-in/return") view=ReturnPage/>
            <Route path=path!("/invitation") view=InvitationPage/>
            <Route path=path!("/team") view=ProjectsPage/>
            <Route path=path!("/team/projects/:project") view=ProjectPage/>
            <Route path=path!("/team/projects/:project/prompts/:prompt") view=PromptPage/>
            <Route path=path!("/team/projects/:project/data/:data") view=DataSetPage/>
            <Route path=path!("/team/projects/:project/train") view=NewTrainingPage/>
            <Route path=path!("/team/projects/:project/trainings/:training") view=TrainingPage/>
            <Route path=path!("/team/account") view=AccountPage/>
            <Route path=path!("/team/server") view=ServerPage/>
        </Routes>
    }
}

/// What shows the runs of a report: nothing else works there.
#[component]
fn PagesOfReport() -> impl IntoView {
    view! {
        <Routes fallback=NotFound>
            <Route path=path!("/compare") view=ComparePage/>
            <Route path=path!("/run/:run") view=LivePage/>
            <Route path=path!("/run/:run/candidate/:candidate?") view=CandidatePage/>
            <Route path=path!("/run/:run/result") view=ResultPage/>
        </Routes>
    }
}
