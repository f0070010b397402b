//! The words of the audit log: what `details.event` and `action` can say.
//!
//! One enum holds the vocabulary of acceptance 2.5 as far as Toolgate emits it today; a kind is
//! added here together with the place that emits it, so that nobody filters for an event that
//! never comes. [`Event::ALL`] lets a test compare the enum with emit sites and documentation.

/// What happened, as `details.event` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A tool call is about to leave; committed before a byte does (AUD-013).
    McpCalled,
    /// The call came back, successfully or with `isError` (AUD-014).
    McpCompleted,
    /// Transport or protocol failed, for a call or for the connection itself (AUD-015).
    McpFailed,
    /// The caller cancelled the call or went away.
    McpCancelled,
    /// The call, list or connection was refused; nothing left.
    McpDenied,
    /// A server answered the handshake or the discovery.
    McpInitialized,
    /// A server's tools were listed.
    McpToolsListed,
    /// A server said that its tools changed.
    McpToolListChanged,
    /// A read of a resource is about to leave; committed before a byte does (RES-005).
    McpResourceRead,
    /// The read came back, with contents or with the server's error.
    McpResourceReadCompleted,
    /// The read has no reply, or none that is one.
    McpResourceReadFailed,
    /// The caller cancelled the read or went away.
    McpResourceReadCancelled,
    /// A prompt is about to be asked for; committed before a byte leaves (PRM-004).
    McpPromptGet,
    /// The prompt came back, rendered or with the server's error.
    McpPromptGetCompleted,
    /// The prompt has no reply, or none that is one.
    McpPromptGetFailed,
    /// The caller cancelled the prompt or went away.
    McpPromptGetCancelled,
    /// A completion is about to be asked for; committed before a byte leaves.
    McpComplete,
    /// The completion came back, with values or with the server's error.
    McpCompleteCompleted,
    /// The completion has no reply, or none that is one.
    McpCompleteFailed,
    /// The caller cancelled the completion or went away.
    McpCompleteCancelled,
    /// A subscription is about to be made; committed before a byte leaves (RES-007).
    McpResourceSubscribe,
    /// The server answered the subscription.
    McpResourceSubscribed,
    /// The subscription has no reply, or none that is one.
    McpResourceSubscribeFailed,
    /// The caller cancelled the subscription or went away.
    McpResourceSubscribeCancelled,
    /// A caller gave a subscription up, or went away with it.
    McpResourceUnsubscribed,
    /// A server said that a subscribed resource changed (RES-013).
    McpResourceUpdated,
    /// A server's question is about to be shown to a person; committed before it is (ELI-015).
    McpElicitationRequested,
    /// The person accepted, declined or dismissed it; what was typed is nowhere in the log (ELI-016).
    McpElicitationAnswered,
    /// Nobody answered it in time; the server heard `cancel` (ELI-011).
    McpElicitationTimedOut,
    /// It was declined without a person, for the reason that is said (ELI-013, ELI-014).
    McpElicitationAutoDeclined,
    /// A server's question to the client's model, or for its directories, is about to be forwarded.
    McpQuestionForwarded,
    /// The client answered such a question.
    McpQuestionAnswered,
    /// A question of a server's was refused, for the reason that is said (SMP-001).
    McpQuestionRefused,
    /// A server made a task of a call; it is written down (TSK-003).
    McpTaskCreated,
    /// A task's status changed, or it is observed again after a connection or a process was lost.
    McpTaskObserved,
    /// The answers to what a task asked are about to leave, or its questions wait for somebody.
    McpTaskInput,
    /// A task is to be cancelled; written before its server is told.
    McpTaskCancelled,
    /// A task is over; with its status.
    McpTaskCompleted,
    /// The outcome of a task was handed to its caller, or to the operator.
    McpTaskDelivered,
    /// A task is past its time, or its server does not know it any more.
    McpTaskExpired,
    /// A server's prompts were listed.
    McpPromptsListed,
    /// A server's resources were listed.
    McpResourcesListed,
    /// A server's resource templates were listed.
    McpResourceTemplatesListed,
    /// A server said that its prompts changed (PRM-006).
    McpPromptListChanged,
    /// A server said that its resources changed.
    McpResourceListChanged,
    /// A question to the operator was recorded.
    ApprovalRequest,
    /// A person said yes to a question.
    ApprovalGrant,
    /// A person said no to a question, or a freeze did.
    ApprovalReject,
    /// An answer came that does not count: not signed by a key of the operator's, or for another call.
    ApprovalAnswerRefused,
    /// A grant was taken back.
    ApprovalRevoke,
    /// The operator decided beforehand what passes, asks or is denied.
    StandingDecision,
    /// The operator stopped a server, a plugin, or everything.
    Frozen,
    /// The operator ended a freeze.
    Thawed,
    /// A question expired without an answer (AUD-019).
    ApprovalTimeout,
    /// A plugin was verified, admitted and loaded.
    PluginLoaded,
    /// A plugin was refused before it could run.
    PluginRefused,
    /// A plugin broke a limit or trapped.
    PluginTrap,
    /// A plugin is about to see the value of a secret.
    SecretRevealed,
    /// A definition does not match its pin.
    ToolPinMismatch,
    /// The surface of a server was pinned or pinned anew.
    ServerPinned,
    /// A server was added to the configuration.
    McpServerInstalled,
    /// A server was removed from the configuration.
    McpServerRemoved,
    /// A bearer token was issued.
    TokenIssued,
    /// A bearer token was revoked.
    TokenRevoked,
    /// The operator trusted a configuration file of a working directory.
    ConfigTrusted,
    /// How the operator is proven was set or changed.
    OperatorProofSet,
    /// Somebody asked for what only the operator may do and did not prove it.
    OperatorProofRefused,
    /// A client claimed a persona or a lane that its credential does not bear out.
    CallerRefused,
    /// A reply did not go out because its client does not read.
    ReplyDropped,
    /// A plugin was installed or updated; says by whom it was accepted.
    PluginInstalled,
    /// An installed plugin was removed.
    PluginRemoved,
    /// A digest of a plugin was denied.
    PluginDenied,
    /// A denied digest may run again.
    PluginDenialLifted,
    /// A rule about who may sign plugins was added.
    PluginTrustAdded,
    /// A rule about who may sign plugins was taken back.
    PluginTrustRemoved,
    /// The plugins in force changed under a running gateway.
    PluginsChanged,
    /// A plugin failed too often in a row and was put aside.
    PluginPutAside,
    /// A definition or a result holds characters that a person does not see.
    HiddenTextFound,
    /// A policy in mode `monitor` would have said something; it decided nothing.
    PolicyMonitored,
    /// A policy withheld what a server said while a call ran: a step of its progress, or its log.
    McpMessageWithheld,
    /// An index of plugins revoked a plugin that was in force, or a key that signed it.
    PluginRevoked,
    /// A newer release of an installed plugin was not taken by itself; says why, and what it may do more.
    PluginUpdateLeft,
    /// Something new was read of an index of plugins.
    IndexRefreshed,
    /// What an index of plugins shows was refused, or it could not be read; says why.
    IndexRefused,
    /// Rows that nobody waited for could not be written; says how many.
    AuditGap,
    /// The heads of the log were signed; with the key and the digest of the checkpoint.
    AuditCheckpoint,
    /// Rows were sealed into a segment; with its range and digest.
    AuditArchived,
    /// What a sealed row says and still counts, written down again when it was sealed.
    AuditCarried,
    /// A lost `state.db` was made anew from what the log remembers.
    StateRecovered,
}

impl Event {
    /// Every kind, in the order of declaration.
    pub const ALL: &[Self] = &[
        Self::McpCalled,
        Self::McpCompleted,
        Self::McpFailed,
        Self::McpCancelled,
        Self::McpDenied,
        Self::McpInitialized,
        Self::McpToolsListed,
        Self::McpToolListChanged,
        Self::McpResourceRead,
        Self::McpResourceReadCompleted,
        Self::McpResourceReadFailed,
        Self::McpResourceReadCancelled,
        Self::McpPromptGet,
        Self::McpPromptGetCompleted,
        Self::McpPromptGetFailed,
        Self::McpPromptGetCancelled,
        Self::McpComplete,
        Self::McpCompleteCompleted,
        Self::McpCompleteFailed,
        Self::McpCompleteCancelled,
        Self::McpResourceSubscribe,
        Self::McpResourceSubscribed,
        Self::McpResourceSubscribeFailed,
        Self::McpResourceSubscribeCancelled,
        Self::McpResourceUnsubscribed,
        Self::McpResourceUpdated,
        Self::McpElicitationRequested,
        Self::McpElicitationAnswered,
        Self::McpElicitationTimedOut,
        Self::McpElicitationAutoDeclined,
        Self::McpQuestionForwarded,
        Self::McpQuestionAnswered,
        Self::McpQuestionRefused,
        Self::McpTaskCreated,
        Self::McpTaskObserved,
        Self::McpTaskInput,
        Self::McpTaskCancelled,
        Self::McpTaskCompleted,
        Self::McpTaskDelivered,
        Self::McpTaskExpired,
        Self::McpPromptsListed,
        Self::McpResourcesListed,
        Self::McpResourceTemplatesListed,
        Self::McpPromptListChanged,
        Self::McpResourceListChanged,
        Self::ApprovalRequest,
        Self::ApprovalGrant,
        Self::ApprovalReject,
        Self::ApprovalAnswerRefused,
        Self::ApprovalRevoke,
        Self::StandingDecision,
        Self::Frozen,
        Self::Thawed,
        Self::ApprovalTimeout,
        Self::PluginLoaded,
        Self::PluginRefused,
        Self::PluginTrap,
        Self::SecretRevealed,
        Self::ToolPinMismatch,
        Self::ServerPinned,
        Self::McpServerInstalled,
        Self::McpServerRemoved,
        Self::TokenIssued,
        Self::TokenRevoked,
        Self::ConfigTrusted,
        Self::OperatorProofSet,
        Self::OperatorProofRefused,
        Self::CallerRefused,
        Self::ReplyDropped,
        Self::PluginInstalled,
        Self::PluginRemoved,
        Self::PluginDenied,
        Self::PluginDenialLifted,
        Self::PluginTrustAdded,
        Self::PluginTrustRemoved,
        Self::PluginsChanged,
        Self::PluginPutAside,
        Self::HiddenTextFound,
        Self::PolicyMonitored,
        Self::McpMessageWithheld,
        Self::PluginRevoked,
        Self::PluginUpdateLeft,
        Self::IndexRefreshed,
        Self::IndexRefused,
        Self::AuditGap,
        Self::AuditCheckpoint,
        Self::AuditArchived,
        Self::AuditCarried,
        Self::StateRecovered,
    ];

    /// The name in `details.event`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::McpCalled => "mcp_called",
            Self::McpCompleted => "mcp_completed",
            Self::McpFailed => "mcp_failed",
            Self::McpCancelled => "mcp_cancelled",
            Self::McpDenied => "mcp_denied",
            Self::McpInitialized => "mcp_initialized",
            Self::McpToolsListed => "mcp_tools_listed",
            Self::McpToolListChanged => "mcp_tool_list_changed",
            Self::McpResourceRead => "mcp_resource_read",
            Self::McpResourceReadCompleted => "mcp_resource_read_completed",
            Self::McpResourceReadFailed => "mcp_resource_read_failed",
            Self::McpResourceReadCancelled => "mcp_resource_read_cancelled",
            Self::McpPromptGet => "mcp_prompt_get",
            Self::McpPromptGetCompleted => "mcp_prompt_get_completed",
            Self::McpPromptGetFailed => "mcp_prompt_get_failed",
            Self::McpPromptGetCancelled => "mcp_prompt_get_cancelled",
            Self::McpComplete => "mcp_complete",
            Self::McpCompleteCompleted => "mcp_complete_completed",
            Self::McpCompleteFailed => "mcp_complete_failed",
            Self::McpCompleteCancelled => "mcp_complete_cancelled",
            Self::McpResourceSubscribe => "mcp_resource_subscribe",
            Self::McpResourceSubscribed => "mcp_resource_subscribed",
            Self::McpResourceSubscribeFailed => "mcp_resource_subscribe_failed",
            Self::McpResourceSubscribeCancelled => "mcp_resource_subscribe_cancelled",
            Self::McpResourceUnsubscribed => "mcp_resource_unsubscribed",
            Self::McpResourceUpdated => "mcp_resource_updated",
            Self::McpElicitationRequested => "mcp_elicitation_requested",
            Self::McpElicitationAnswered => "mcp_elicitation_answered",
            Self::McpElicitationTimedOut => "mcp_elicitation_timed_out",
            Self::McpElicitationAutoDeclined => "mcp_elicitation_auto_declined",
            Self::McpQuestionForwarded => "mcp_question_forwarded",
            Self::McpQuestionAnswered => "mcp_question_answered",
            Self::McpQuestionRefused => "mcp_question_refused",
            Self::McpTaskCreated => "mcp_task_created",
            Self::McpTaskObserved => "mcp_task_observed",
            Self::McpTaskInput => "mcp_task_input",
            Self::McpTaskCancelled => "mcp_task_cancelled",
            Self::McpTaskCompleted => "mcp_task_completed",
            Self::McpTaskDelivered => "mcp_task_delivered",
            Self::McpTaskExpired => "mcp_task_expired",
            Self::McpPromptsListed => "mcp_prompts_listed",
            Self::McpResourcesListed => "mcp_resources_listed",
            Self::McpResourceTemplatesListed => "mcp_resource_templates_listed",
            Self::McpPromptListChanged => "mcp_prompt_list_changed",
            Self::McpResourceListChanged => "mcp_resource_list_changed",
            Self::ApprovalRequest => "approval.request",
            Self::ApprovalGrant => "approval.grant",
            Self::ApprovalReject => "approval.reject",
            Self::ApprovalAnswerRefused => "approval.answer_refused",
            Self::ApprovalRevoke => "approval.revoke",
            Self::StandingDecision => "standing_decision",
            Self::Frozen => "frozen",
            Self::Thawed => "thawed",
            Self::ApprovalTimeout => "approval.timeout",
            Self::PluginLoaded => "plugin_loaded",
            Self::PluginRefused => "plugin_refused",
            Self::PluginTrap => "plugin_trap",
            Self::SecretRevealed => "secret_revealed",
            Self::ToolPinMismatch => "tool_pin_mismatch",
            Self::ServerPinned => "server_pinned",
            Self::McpServerInstalled => "mcp_server_installed",
            Self::McpServerRemoved => "mcp_server_removed",
            Self::TokenIssued => "token_issued",
            Self::TokenRevoked => "token_revoked",
            Self::ConfigTrusted => "config_trusted",
            Self::OperatorProofSet => "operator_proof_set",
            Self::OperatorProofRefused => "operator_proof_refused",
            Self::CallerRefused => "caller_refused",
            Self::ReplyDropped => "reply_dropped",
            Self::PluginInstalled => "plugin_installed",
            Self::PluginRemoved => "plugin_removed",
            Self::PluginDenied => "plugin_denied",
            Self::PluginDenialLifted => "plugin_denial_lifted",
            Self::PluginTrustAdded => "plugin_trust_added",
            Self::PluginTrustRemoved => "plugin_trust_removed",
            Self::PluginsChanged => "plugins_changed",
            Self::PluginPutAside => "plugin_put_aside",
            Self::HiddenTextFound => "hidden_text_found",
            Self::PolicyMonitored => "policy_monitored",
            Self::McpMessageWithheld => "mcp_message_withheld",
            Self::PluginRevoked => "plugin_revoked",
            Self::PluginUpdateLeft => "plugin_update_left",
            Self::IndexRefreshed => "index_refreshed",
            Self::IndexRefused => "index_refused",
            Self::AuditGap => "audit_gap",
            Self::AuditCheckpoint => "audit_checkpoint",
            Self::AuditArchived => "audit_archived",
            Self::AuditCarried => "audit_carried",
            Self::StateRecovered => "state_recovered",
        }
    }

    /// The `action` such a row carries unless its maker says otherwise (AUD-006): a noun and a
    /// verb, so that `--action tool.execute` finds the whole life of calls.
    pub const fn action(self) -> &'static str {
        match self {
            Self::McpCalled | Self::McpCompleted | Self::McpFailed | Self::McpCancelled | Self::McpDenied => {
                "tool.execute"
            }
            Self::McpInitialized => "server.connect",
            Self::McpToolsListed | Self::McpToolListChanged => "tool.list",
            Self::McpResourceRead
            | Self::McpResourceReadCompleted
            | Self::McpResourceReadFailed
            | Self::McpResourceReadCancelled => "resource.read",
            Self::McpPromptGet
            | Self::McpPromptGetCompleted
            | Self::McpPromptGetFailed
            | Self::McpPromptGetCancelled => "prompt.get",
            Self::McpComplete
            | Self::McpCompleteCompleted
            | Self::McpCompleteFailed
            | Self::McpCompleteCancelled => "argument.complete",
            Self::McpResourceSubscribe
            | Self::McpResourceSubscribed
            | Self::McpResourceSubscribeFailed
            | Self::McpResourceSubscribeCancelled => "resource.subscribe",
            Self::McpResourceUnsubscribed => "resource.unsubscribe",
            Self::McpResourceUpdated => "resource.update",
            Self::McpElicitationRequested
            | Self::McpElicitationAnswered
            | Self::McpElicitationTimedOut
            | Self::McpElicitationAutoDeclined => "server.elicit",
            Self::McpQuestionForwarded | Self::McpQuestionAnswered | Self::McpQuestionRefused => "server.ask",
            Self::McpTaskCreated => "task.create",
            Self::McpTaskObserved => "task.observe",
            Self::McpTaskInput => "task.update",
            Self::McpTaskCancelled => "task.cancel",
            Self::McpTaskCompleted => "task.complete",
            Self::McpTaskDelivered => "task.deliver",
            Self::McpTaskExpired => "task.expire",
            Self::McpPromptsListed | Self::McpPromptListChanged => "prompt.list",
            Self::McpResourcesListed | Self::McpResourceTemplatesListed | Self::McpResourceListChanged => {
                "resource.list"
            }
            Self::ApprovalRequest => "approval.request",
            Self::ApprovalGrant => "approval.grant",
            Self::ApprovalReject => "approval.reject",
            Self::ApprovalAnswerRefused => "approval.answer_refused",
            Self::ApprovalRevoke => "approval.revoke",
            Self::StandingDecision => "approval.decide",
            Self::Frozen => "gateway.freeze",
            Self::Thawed => "gateway.thaw",
            Self::ApprovalTimeout => "approval.timeout",
            Self::PluginLoaded | Self::PluginRefused | Self::PluginsChanged => "plugin.load",
            Self::PluginTrap | Self::PluginPutAside => "plugin.run",
            Self::PolicyMonitored => "policy.monitor",
            Self::McpMessageWithheld => "message.withhold",
            Self::PluginRevoked => "plugin.revoke",
            Self::IndexRefreshed | Self::IndexRefused => "plugin.index",
            Self::PluginInstalled | Self::PluginUpdateLeft => "plugin.install",
            Self::PluginRemoved => "plugin.remove",
            Self::PluginDenied | Self::PluginDenialLifted => "plugin.deny",
            Self::PluginTrustAdded | Self::PluginTrustRemoved => "plugin.trust",
            Self::SecretRevealed => "secret.reveal",
            Self::ToolPinMismatch => "tool.pin",
            Self::ServerPinned => "server.pin",
            Self::McpServerInstalled => "server.install",
            Self::McpServerRemoved => "server.remove",
            Self::TokenIssued => "token.issue",
            Self::TokenRevoked => "token.revoke",
            Self::ConfigTrusted => "config.trust",
            Self::OperatorProofSet => "operator.init",
            Self::OperatorProofRefused => "operator.prove",
            Self::CallerRefused => "caller.refuse",
            Self::ReplyDropped => "reply.drop",
            Self::HiddenTextFound => "hidden_text.find",
            Self::AuditGap => "audit.gap",
            Self::AuditCheckpoint => "audit.checkpoint",
            Self::AuditArchived => "audit.archive",
            Self::AuditCarried => "audit.carry",
            Self::StateRecovered => "state.recover",
        }
    }
}
