-- By whom else than this server a member is known: a subject at an OpenID Connect issuer.
CREATE TABLE identities (
    id TEXT PRIMARY KEY NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT,
    UNIQUE (issuer, subject)
);

CREATE INDEX identities_of_member ON identities (member);
