//! The words that carry meaning and the rules between them, as tables.

use super::policy::Policy;
use super::policy::Policy::{
    BeBrief, CheckEligibility, ConfirmWrites, ExhaustOptions, HelpHarmless, LookUpFirst, MinimiseCalls,
    NeverGuess, PlanSteps, RefuseHarm, ReuseKnown, Summarise, TransferByPolicy, VerifyIdentity,
};

/// Names with what they stand for, without a line for each bracket.
macro_rules! concepts {
    ($($name:literal: $phrases:literal,)*) => { &[$(($name, $phrases)),*] };
}

/// Concepts by name: phrases parted by `|`; a word that ends in `*` matches every word with that
/// beginning.
pub(super) const CONCEPTS: &[(&str, &str)] = concepts! {
    // How a sentence is put.
    "negator": "not|never|no|avoid*|without|skip*|instead of|rather than|refrain*|stop|nor|omit*|forget*|neglect*\
        |no need|need not|hesitat*|rarely|seldom|fail to|failing to|forbidden|refuse to",
    "clause-break": ",|and|but|then|always|otherwise|however|instead",
    "hedge": "if possible|where possible|when possible|try to|may|might|perhaps|maybe|consider|feel free|usually\
        |generally|ideally|optionally|sometimes|when convenient|if convenient|could|prefer*|where it makes sense\
        |as a rule of thumb|often|if you like|tend to|in most cases|where practical",
    "emphasis": "always|must|never|every time|without exception|critical*|important|importantly|essential|strictly\
        |no matter|under no circumstance*|at all times|make absolutely|in every case|crucial*",
    // Order and condition.
    "before": "before|prior to|ahead of|until after|earlier than|precede*",
    "instead": "instead of|rather than|before|prior to|in place of|over asking",
    "first": "first|start*|begin*|upfront|up front|initially|at the outset|right away|opening|foremost",
    "only": "only|solely|exclusively|just",
    "only-after": "only after|only once|only when|only if|after|once|only as|as a last|when every|when all",
    "until": "until|unless|before|if you have not|while",
    "when": "when|if|where|whenever|in case|cases|situations",
    // People and things.
    "person": "customer*|user*|caller*|client*|person|people|shopper*|guest*|them|they|traveller*",
    "identity": "identity|identities|who the customer|who they|who you|who is|who the caller|customer id|user id\
        |account holder|ownership|credential*|identification|their name|name and|name or|email address\
        |right person|account details|owns the",
    "tools": "tool*|system*|record*|database|account|order history|look ups|lookups",
    "call": "call|calls|calling|called|lookup*|look up|look ups|looked up|look anything up|looking up\
        |look things up|look * up|quer*|tool*|search*|fetch*|retriev*|request|requests|requested|ask for\
        |asking for|ask|asking|steps|look a|look the|looking",
    "call-noun": "call|calls|tool|tools|lookup*|look ups|look up|quer*|requests|search*|api",
    "write": "chang*|writ*|updat*|modif*|action|actions|cancel*|refund*|transact*|edit*|commit*|execut*|alter*\
        |booking|irreversible|exchang*|return|returns|touch*|operation*|act|acting|take effect",
    "rule": "eligib*|polic*|rule|rules|condition*|qualif*|allowed|permitted|permit*|allows|allow|terms|entitled\
        |entitlement*|requirement*|guideline*|covered",
    "transfer": "transfer*|escalat*|hand over|hand off|hands over|handing|handover*|handoff*|hand the|hand it\
        |hand them|human agent*|human colleague*|live agent*|to a human|to a person|to a colleague|to human\
        |human representative*|pass the customer|pass it on|pass them|pass the case|human support|involve a human\
        |human agents|human help|bring in a",
    "every-option": "every option*|all option*|all other|every other|everything else|everything you\
        |every alternative*|all alternative*|exhaust*|try everything|tried everything|every avenue|all avenue*\
        |last resort|all means|every tool|all the tools|all available|other option*|every possib*|all possib*\
        |nothing else|no other|every way|all ways|every path|own tools|several ways|other ways|other way\
        |everything in your power",
    "solve": "solve*|resolv*|handle|fix|deal with|settle|work it out|finish|help",
    "yourself": "yourself|on your own|your own|without help|within this conversation|directly with your",
    // Doing.
    "verify": "verif*|authenticat*|validat*|confirm*|establish*|check*|make sure|ensure|ascertain*|prove|find out\
        |know|determine|ask for|asking|obtain|get",
    "identify": "authenticat*|identify|identifying|identified|verify the customer|verifying the customer",
    "look-up": "look up|looking up|looked up|look it up|look things up|look * up|lookup*|search*|fetch*|retriev*\
        |quer*|consult*|pull up|check the system*|check the record*|check the account|check your tool*\
        |check in the|find|finding|read|use the tool*|use tool*|use your tool*|using your tool*|using the tool*\
        |call the tool*|inspect*|turn to the tool*|turn to your tool*|check the order*|gather",
    "facts": "detail*|information|fact|facts|data|record*|order*|answer*|what you need|anything|things|it",
    "ask": "ask|asks|asking|asked|question*|request*|inquir*|bother*|trouble|burden*",
    "obtainable": "can look|could look|can find|could find|tool* can|tool* could|tool* already|tool* provide*\
        |tool* tell*|system* already|system* can|system* know*|in the system*|on file|in the record*|record* show\
        |record* already|available in|available from|available through|can retrieve|can fetch|can be looked\
        |can be found|your tools",
    "not-obtainable": "can not look|can not find|can not tell|can not provide|can not give|can not retrieve\
        |not available|do not know|can not answer|do not have",
    "reuse": "reuse*|re use|reusing|keep in mind|remember*|rely on what|refer back|work from|recall*|retain*\
        |build on|use what|use the result*|use earlier|draw on|take it from|carry forward|keep track|make use of\
        |consult what",
    "known": "known|you know|already have|already has|already found|have already|already know|already learned\
        |already seen|earlier result*|previous result*|results you|result* you|earlier in|already returned\
        |gathered|obtained|so far|earlier|previous*|already told|already said|from before|already been\
        |already looked|already retrieved|already fetched|were told|tool results|past results",
    "repeat": "repeat*|again|twice|more than once|duplicat*|redundant*|re fetch*|re run|re query*|rerun*|refetch*\
        |second time|redo|identical|same|re check*|over and over|re read*|once more",
    "few": "minimi*|as few|fewest|fewer|reduc*|limit*|number of|economical*|sparing*|small number|lean|least\
        |cut down|frugal*|keep * low|efficient*|budget",
    "few-strict": "minimi*|as few|fewest|fewer|economical*|sparing*|frugal*|least number|cut down|small number\
        |smallest",
    "batch": "batch*|combin*|group*|one go|at once|parallel|together|single call|single step|bundle*|merge\
        |one call|fold",
    "needed": "necessary|needed|need|required|essential|really|strictly|useful",
    "unneeded": "unnecessar*|needless*|superfluous|extra|more than needed|excess*|wasteful|speculative|pointless\
        |optional|just to be sure|just in case",
    "freely": "freely|liberally|generously|as many|as often|as much|plenty|extensively|many",
    "confirm": "confirm*|approv*|explicit yes|consent*|agree*|permission|go ahead|clear yes|read back\
        |double check with|explicit ok*|explicitly say|says yes|said yes|say yes|sign off|a yes|spell out",
    "check": "check*|verif*|review*|make sure|ensure|confirm*|consult*|read|reading|determin*|establish*|validat*\
        |test|compare*|look at|know",
    "follow": "follow*|adhere*|comply|obey*|observ*|respect*|stick to|keep to|apply",
    "early": "quick*|early|immediate*|promptly|soon|right away|at once|straight away|in doubt|unsure|not sure\
        |unhappy|upset|frustrated|at the first|whenever|complicated|difficult|generous*|freely",
    "policy-demand": "policy require*|policy say*|policy demand*|policy call*|policy ask*|policy allow*\
        |policy state*|policy tell*|required by|policy|polic*|rule*|outside|out of scope|beyond|guideline*\
        |not allowed|listed",
    "plan": "step by step|plan|plans|planning|think through|break * down|break the|decompos*|outline\
        |one step at a time|reason through|think before|think carefully|list the steps|work out the steps\
        |chain of thought|think aloud|think it through|think about|work through|lay out|reason about|think ahead\
        |map out|reasoning",
    "hurried": "without thinking|without planning|do not think|do not plan|no planning|skip the plan*\
        |skip planning|first thing that comes",
    "brief": "brief|briefly|concise*|short|shorter|succinct*|terse|tersely|few words|to the point|compact|crisp*\
        |one sentence|two sentences|three sentences|a sentence|one or two|no filler|small talk|economical|lean",
    "brief-alone": "be brief|be concise|stay brief|keep it short|brief and|concise and|be succinct|to the point\
        |concisely|briefly|succinctly|be terse|few words|keep * brief|keep * short|keep * concise|keep * brief\
        |stay concise|be short",
    "filler": "filler|padding|small talk|chatter|ramble|rambling|pleasantries|verbose|wordy|long winded|lengthy\
        |needless words|long answers|long replies|long messages",
    "long": "in detail|detailed|thorough explanation*|elaborat*|at length|in depth|long answer*|long repl*\
        |comprehensive|verbose|full explanation*|as long as|explain everything|expansive",
    "answer": "answer*|repl*|respon*|message*|sentence*|write|writing|wording|text|texts|speak|explanation*\
        |explain|output",
    "guess": "guess*|assum*|invent*|make up|making up|made up|fabricat*|speculat*|hallucinat*|make things up\
        |imagin*",
    "grounded": "verified|confirmed|retrieved|returned|actual|documented|tool result*|what the tool*|facts you\
        |supported by|results of|come from the|comes from the|came from|evidence",
    "rely": "rely|base|based|stick|ground|state|use only|only use|only state|take only|stay with|repeat only",
    "missing": "missing|unclear|unknown|incomplete|ambiguous|not given|not provided|left out|lacking|unsure about",
    "summary": "summar*|recap*|sum up|wrap up|restat*|list what|overview of what|state what was done|what you did\
        |what was done|what has been done|what you have done",
    "end": "end|ending|clos*|finish*|final*|conclu*|done|last message|complete|completed|wrap|over",
    "refuse": "refus*|declin*|turn down|reject*|turn away|say no to|deny",
    "harm": "harm|harmful|unsafe|danger*|illegal|malicious|violent|criminal|hateful|weapon*|abus*|crime*|unethical",
    "assist": "help|assist|comply|support|answer|carry out|fulfil*|go along",
    "harmless": "harmless|benign|innocent|legitimate|innocuous|safe|ordinary|everyday|sound* alarming\
        |sounds dangerous|sound* dangerous|look* alarming",
    "at-most": "at most",
};

/// A rule as written in [`RULES`]: policy, weight, pattern.
///
/// A pattern is a list of concept names parted by blanks. `*name` marks the head, the concept that
/// a negation must precede to turn the rule round (the first unless marked); `!name` must not
/// occur in the sentence.
pub(super) type RuleSource = (Policy, f64, &'static str);

/// What concepts in order say about a policy; see [`RuleSource`] for the notation. Of the rules
/// that match a sentence the one with most concepts counts for its policy.
pub(super) const RULES: &[RuleSource] = &[
    (VerifyIdentity, 0.75, "verify identity"),
    (VerifyIdentity, 0.95, "verify identity first"),
    (VerifyIdentity, 0.95, "verify identity before"),
    (VerifyIdentity, 0.95, "first *verify identity"),
    (VerifyIdentity, 0.95, "before *verify identity"),
    (VerifyIdentity, 0.7, "identify person"),
    (VerifyIdentity, 0.95, "identify person first"),
    (VerifyIdentity, 0.95, "identify person before"),
    (VerifyIdentity, 0.9, "first *identify person"),
    (VerifyIdentity, 0.9, "before *identify person"),
    (VerifyIdentity, 0.75, "identity *verify"),
    (VerifyIdentity, 0.9, "identity *verify before"),
    (VerifyIdentity, 0.9, "before identity *verify"),
    (VerifyIdentity, 0.9, "identity *verify first"),
    //
    (LookUpFirst, 0.95, "look-up instead ask"),
    (LookUpFirst, -0.9, "ask before look-up"),
    (LookUpFirst, 0.9, "before ask look-up"),
    (LookUpFirst, 0.9, "ask only look-up"),
    (LookUpFirst, 0.9, "ask only not-obtainable"),
    (LookUpFirst, -0.9, "ask obtainable !not-obtainable"),
    (LookUpFirst, 0.7, "look-up facts first"),
    (LookUpFirst, 0.7, "first *look-up facts"),
    (LookUpFirst, 0.7, "look-up facts yourself"),
    (LookUpFirst, 0.6, "facts look-up yourself"),
    //
    (ReuseKnown, 0.9, "reuse known"),
    (ReuseKnown, 0.65, "reuse facts"),
    (ReuseKnown, -0.8, "repeat call"),
    (ReuseKnown, -0.8, "call *repeat"),
    (ReuseKnown, -0.75, "ask known"),
    (ReuseKnown, -0.75, "look-up known"),
    (ReuseKnown, -0.75, "call-noun known"),
    (ReuseKnown, 0.9, "reuse known instead call"),
    //
    (MinimiseCalls, 0.9, "few call-noun"),
    (MinimiseCalls, 0.8, "call-noun few-strict"),
    (MinimiseCalls, 0.85, "batch call-noun"),
    (MinimiseCalls, 0.75, "call-noun batch"),
    (MinimiseCalls, 0.85, "only call-noun needed"),
    (MinimiseCalls, 0.85, "call-noun only needed"),
    (MinimiseCalls, -0.8, "unneeded call-noun"),
    (MinimiseCalls, -0.75, "call-noun *unneeded"),
    (MinimiseCalls, -0.85, "call-noun freely"),
    (MinimiseCalls, -0.85, "freely call-noun"),
    (MinimiseCalls, 0.3, "call-noun at-most"),
    //
    (ConfirmWrites, 0.95, "confirm before write"),
    (ConfirmWrites, 0.95, "before write *confirm"),
    (ConfirmWrites, 0.8, "confirm write"),
    (ConfirmWrites, 0.85, "write *confirm"),
    (ConfirmWrites, 0.9, "write only-after *confirm"),
    (ConfirmWrites, -0.85, "write until confirm"),
    (ConfirmWrites, 0.6, "confirm person !identity"),
    (ConfirmWrites, 0.6, "person *confirm !identity"),
    //
    (CheckEligibility, 0.7, "check rule"),
    (CheckEligibility, 0.95, "check rule before write"),
    (CheckEligibility, 0.95, "before write *check rule"),
    (CheckEligibility, 0.85, "write *check rule"),
    (CheckEligibility, 0.8, "write only rule !transfer"),
    (CheckEligibility, 0.8, "only write rule !transfer"),
    (CheckEligibility, 0.5, "follow rule"),
    (CheckEligibility, 0.85, "rule *check before write"),
    (CheckEligibility, 0.7, "rule *check"),
    //
    (ExhaustOptions, 0.95, "every-option before transfer"),
    (ExhaustOptions, 0.95, "transfer only-after every-option"),
    (ExhaustOptions, 0.9, "before transfer *every-option"),
    (ExhaustOptions, 0.85, "transfer every-option"),
    (ExhaustOptions, -0.9, "transfer until every-option"),
    (ExhaustOptions, 0.7, "solve yourself"),
    (ExhaustOptions, 0.85, "solve yourself before transfer"),
    (ExhaustOptions, 0.85, "solve yourself instead transfer"),
    (ExhaustOptions, 0.6, "every-option !transfer !look-up"),
    (ExhaustOptions, -0.6, "transfer !only !policy-demand"),
    (ExhaustOptions, -0.8, "transfer early"),
    (ExhaustOptions, -0.8, "early transfer"),
    //
    (TransferByPolicy, 0.95, "transfer only policy-demand"),
    (TransferByPolicy, 0.95, "only transfer policy-demand"),
    (
        TransferByPolicy,
        0.75,
        "transfer when policy-demand !every-option",
    ),
    (TransferByPolicy, 0.75, "policy-demand transfer"),
    (TransferByPolicy, 0.85, "when policy-demand transfer"),
    (TransferByPolicy, -0.85, "transfer until policy-demand"),
    (TransferByPolicy, 0.6, "transfer policy-demand"),
    //
    (PlanSteps, 0.85, "plan"),
    (PlanSteps, 0.95, "plan before"),
    (PlanSteps, 0.95, "before plan"),
    (PlanSteps, 0.95, "first *plan"),
    (PlanSteps, 0.95, "plan first"),
    (PlanSteps, -0.8, "hurried"),
    //
    (BeBrief, 0.85, "brief-alone"),
    (BeBrief, 0.9, "answer brief"),
    (BeBrief, 0.9, "brief answer"),
    (BeBrief, -0.8, "filler"),
    (BeBrief, -0.85, "long"),
    (BeBrief, -0.85, "answer *long"),
    (BeBrief, -0.8, "answer *filler"),
    (BeBrief, 0.3, "answer at-most"),
    //
    (NeverGuess, -0.85, "guess"),
    (NeverGuess, 0.75, "ask missing"),
    (NeverGuess, 0.75, "missing ask"),
    (NeverGuess, 0.85, "missing ask instead guess"),
    (NeverGuess, 0.85, "ask instead guess"),
    (NeverGuess, 0.85, "rely grounded"),
    (NeverGuess, 0.75, "only grounded facts"),
    //
    (Summarise, 0.75, "summary"),
    (Summarise, 0.9, "summary end"),
    (Summarise, 0.9, "end *summary"),
    (Summarise, 0.9, "before end *summary"),
    //
    (RefuseHarm, 0.9, "refuse harm"),
    (RefuseHarm, -0.85, "assist harm !harmless !refuse"),
    (RefuseHarm, 0.8, "harm refuse"),
    //
    (HelpHarmless, 0.85, "assist harmless"),
    (HelpHarmless, 0.85, "harmless assist"),
    (HelpHarmless, -0.85, "refuse harmless"),
    (HelpHarmless, 0.85, "refuse only harm"),
];
