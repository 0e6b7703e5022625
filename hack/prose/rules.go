package main

// rule forbids a phrase.
type rule struct {
	// pattern matches the phrase in one sentence, in the syntax of RE2. The sentence is in lower case and has single blanks; code,
	// quoted text, identifiers and values are underscores. A caret is the start of the sentence.
	pattern string
	// unless matches the phrase together with words that make it good English.
	unless string
	// sentence is true for a rule that does not apply to headings, cells of tables and questions.
	sentence bool
	// gradual is true for a rule that the existing text does not follow yet. Its findings count toward the ceiling of their area.
	gradual bool
	// instead says what to write.
	instead string
	// wrong are sentences that the rule must find, and right are sentences in which no rule may find anything.
	wrong, right []string
}

// ceilings are the maximum numbers of findings of gradual rules. They only fall: rewrite a phrase before you add another one.
var ceilings = map[area]int{docs: 55, descriptions: 17, configuration: 7, messages: 13, comments: 50, testNames: 3}

// slack returns the number of findings by which an area can be below its ceiling before that must be lowered. It lets branches rewrite phrases side
// by side.
func slack(ceiling int) int { return max(ceiling/3, 1) }

// rules are all rules. Of those that match the same words, the first one counts.
var rules = []rule{
	{
		pattern: `\bto be had\b`,
		instead: `write "available", or say who can get it and where`,
		wrong:   []string{"There is no browser to be had.", "How often a minute one is to be had."},
		right:   []string{"A browser is not available."},
	},
	{
		pattern: `\b(?:is|are|was|were) (?:not )?to be\b`,
		instead: `write "must be", "must not be" or "can be"`,
		wrong:   []string{"The color is to be a name.", "A path where a file is to be.", "They are not to be shown."},
		right:   []string{"The color must be a name.", "The aim is to be fast."},
		unless:  `\b(?:aim|goal|idea|point|purpose) is to be\b`,
	},
	{
		pattern: `\b(?:is|are|was|were) (?:not |all |both |also |only |never )?to [a-z]+\b`,
		unless: `\b(?:is|are|was|were) (?:not )?to (?:the|a|an|its|their|this|that|these|those|it|them|one|each|every|all|any|some|another|other|what|which)\b` +
			`|\b(?:ways?|aim|goal|purpose|default|idea|point|choice|alternative|fix|remedy|task|job|step|option|effect|rule|convention|easiest|simplest|safest|best)(?: [a-z]+){0,2} (?:is|are|was|were) (?:not )?to\b`,
		instead: `write "must", "must not" or "can" before the verb`,
		wrong:   []string{"The path is not to end in a slash.", "What a file is to have.", "Groups are to name it."},
		right:   []string{"The path must not end in a slash.", "The way out is to rename it.", "The link is to the page.", "The answer is due to a timeout."},
	},
	{
		pattern: `\b(?:is|are|was|were|be|been|being) (?:not |never |already )?had\b`,
		instead: `write "exists", "is supported" or "is available"`,
		wrong:   []string{"Such remotes are not had."},
		right:   []string{"The user had no role."},
	},
	{
		pattern: `\b(?:is|are|was|were) none\b`,
		unless:  `\b(?:there (?:is|are|was|were)|default is|role is) none\b|\bnone of\b`,
		instead: `say that it does not exist, or what it is instead`,
		wrong:   []string{"A name that is none is refused.", "The color is none."},
		right:   []string{"A name that does not exist is refused.", "Returns nil if there is none.", "It is none of these."},
	},
	{
		pattern: `\b(?:is|are|was|were) no [a-z]+\b`,
		unless: `\b(?:there (?:is|are|was|were)|where (?:is|are)) no\b|^(?:is|are|was|were) no\b` +
			`|\b(?:is|are|was|were) no (?:longer|more|less|fewer|later|earlier|older|newer|larger|smaller|bigger|longer|use|different|better|worse|other|need)\b`,
		instead: `write "is not a" or "are not"`,
		wrong:   []string{"A raw file is no page.", "What is no URL stays empty."},
		right:   []string{"A raw file is not a page.", "There is no page.", "It is no longer there to see."},
	},
	{
		pattern: `\bbut for\b`,
		unless:  `\bnot\b[^.;]* but for\b`,
		instead: `write "except"`,
		wrong:   []string{"Everything is gone but for the volume."},
		right:   []string{"Not for speed but for safety.", "Everything except the volume is gone."},
	},
	{
		pattern: `\b(?:nobody|no one|none|nothing) but\b`,
		instead: `write "only", or "no X except"`,
		wrong:   []string{"Nobody but the owner sees it.", "It imports nothing but apimachinery."},
		right:   []string{"Only the owner sees it."},
	},
	{
		pattern: `\b(?:all|every|any|each)(?: [a-z_]+){0,2} but (?:the|those|its|their|that|what|this|these|such)\b`,
		instead: `write "except"`,
		wrong:   []string{"It keeps out the tokens of all projects but the project itself."},
		right:   []string{"All projects except this one.", "All projects see it, but the owner decides."},
	},
	{
		pattern: `\b(?:to|for|by|with|from|at|than|after|admits?|refuses?|answers?|serves?|lets?(?: in| through)?|keeps? out) who\b`,
		instead: `write "anyone who", "users who" or the name of the role`,
		wrong:   []string{"It answers 503 to who does not wait.", "It lets through who has the role."},
		right:   []string{"It lets through anyone who has the role.", "It says who has the role.", "Users who wait are served."},
	},
	{
		pattern: `\bof who\b`,
		unless:  `\b(?:record|list|log|regardless|irrespective|independent|independently|knowledge|question|matter) of who\b`,
		instead: `write "of users who" or "of anyone who"`,
		wrong:   []string{"The token of who calls."},
		right:   []string{"The answer is the same, regardless of who asks."},
	},
	{
		pattern:  `^(?:what|who|whom|whose|whoever) .*`,
		sentence: true,
		instead:  `begin with the subject`,
		wrong:    []string{"What no rule names is left alone.", "Who may push is in the object.", "Whom a request is made as is in its query"},
		right:    []string{"Everything that no rule names is left alone.", "What is a shard?"},
	},
	{
		pattern:  `^(?:one|that|those) (?:that|which|whose|who)\b|^(?:that|those) of\b|^one (?:of (?:which|whose|one)|with|without)\b`,
		sentence: true,
		unless:   `^those who\b`,
		instead:  `name the subject`,
		wrong:    []string{"One that is left out is the default.", "Those of a user are shown first.", "That of the server counts."},
		right:    []string{"One of them is left out.", "A field that is left out has its default.", "That is why."},
	},
	{
		pattern: `\b(?:by|with|from|for|to|of|at|in) one (?:that|who|whose|with|without|which)\b`,
		unless:  `\b(?:from|of|to) one (?:that does not exist|with)\b`,
		instead: `repeat the noun: "a token that"`,
		wrong:   []string{"Uses of one that is deleted."},
		right:   []string{"Uses of a token that is deleted.", "It is limited to one for each project."},
	},
	{
		pattern: `\b(?:that|those) of (?:[a-z_]+ ){1,4}(?:whose|who)\b`,
		instead: `repeat the noun, and make two sentences if need be`,
		wrong:   []string{"It is compared with that of the user whose token it is."},
		right:   []string{"It is compared with the name of the token's owner."},
	},
	{
		pattern: `\b(?:is|are|was|were|has|have|means?) (?:that|those) of\b`,
		instead: `repeat the noun`,
		wrong:   []string{"Check is that of the repository.", "Scopes are those of the token."},
		right:   []string{"Check checks the repository."},
	},
	{
		pattern: `\bof (?:theirs|hers|his)\b`,
		instead: `write "their X"`,
		wrong:   []string{"A project of theirs."},
		right:   []string{"One of their projects."},
	},
	{
		pattern: `\b(?:he|his|him|himself)\b`,
		instead: `write "they" or "their", or repeat the noun`,
		wrong:   []string{"The user sees what he may see.", "A block ends his session."},
		right:   []string{"Users see only their own projects."},
	},
	{
		pattern: `\bas (?:[a-z0-9_.,]+ ){1,5}(?:has|have) it\b`,
		instead: `write "as X defines it" or "as X says"`,
		wrong:   []string{"A date counts as HTTP has it."},
		right:   []string{"A date counts as HTTP defines it.", "The cache has it."},
	},
	{
		pattern: `\b(?:has|have|had) (?:it|them|somebody|someone|nobody|the [a-z]+) (?:change|read|run|make|do|go|write|ask|answer|wait|take|give|show|say|know|see|find|end|begin|stop|push|create|remove)\b`,
		instead: `write "makes it run", or who does what`,
		wrong:   []string{"It has the client read the reason.", "A test has somebody change the object."},
		right:   []string{"The client reads the reason.", "It has the right name."},
	},
	{
		pattern: `\bother than (?:it|they|those|that|one)\b`,
		instead: `write "different from", or say what it was before`,
		wrong:   []string{"The value is other than it is declared."},
		right:   []string{"The value differs from the declared one."},
	},
	{
		pattern: `\banew\b`,
		instead: `write "again" or "new"`,
		wrong:   []string{"A group that is made anew."},
		right:   []string{"A group that is created again."},
	},
	{
		pattern: `\b(?:made|makes?|making) (?:[a-z]+ )?over rest\b`,
		instead: `write "created over REST"`,
		wrong:   []string{"Projects made over REST have Delete."},
		right:   []string{"Projects created over REST have Delete."},
	},
	{
		pattern: `\bfor want of\b`,
		instead: `write "because there is no X"`,
		wrong:   []string{"It waits for want of a role."},
		right:   []string{"It waits because the user has no role."},
	},
	{
		pattern: `\b(?:ends?|ended) to be\b`,
		instead: `write "is no longer"`,
		wrong:   []string{"The token ends to be accepted."},
		right:   []string{"The token is no longer accepted."},
	},
	{
		pattern: `\bspeaks? of\b`,
		instead: `write "describes"`,
		wrong:   []string{"The generation that the status speaks of."},
		right:   []string{"The generation that the status describes."},
	},
	{
		pattern: `, be it\b`,
		instead: `write "whether"`,
		wrong:   []string{"It ends, be it by a signal or not."},
		right:   []string{"It ends, whether by a signal or not."},
	},
	{
		pattern: `\b(?:thereof|therein|thereupon|whereof|wherein|whereupon|whence|thence|hither|thither|lest|unto|nought|herein|hereof|aforesaid|shall)\b`,
		instead: `use a word of today`,
		wrong:   []string{"The server shall wait.", "It waits, lest it be killed."},
		right:   []string{"The server must wait."},
	},
	{
		pattern: `\bwho(?:m)?ever\b`,
		instead: `write "anyone who" or "everyone who"`,
		wrong:   []string{"The error for whoever asks."},
		right:   []string{"The error for anyone who asks."},
	},
	{
		pattern: `\ball that (?:is|are|was|were|has|have|there|it|they|can|must|may|belongs?)\b`,
		instead: `write "everything that", or "all X that"`,
		wrong:   []string{"It removes groups with all that is below them."},
		right:   []string{"It removes groups with everything that is below them.", "All projects that are below it."},
	},
	{
		pattern: `\bas good as\b`,
		instead: `write "almost", or what is true`,
		wrong:   []string{"It is as good as gone."},
		right:   []string{"It is almost gone."},
	},
	{
		pattern: `\bthat there (?:is|are|was|were)\b`,
		unless:  `\b(?:says?|said|means?|knows?|shows?|sees?|checks?|finds?|so|ensures?|reports?|notes?|sure|than|learns?|expects?|learned) that there\b`,
		instead: `write "every X", or leave it out`,
		wrong:   []string{"It tries each way that there is."},
		right:   []string{"It tries every way.", "It reports that there is no ref."},
	},
	{
		pattern: `\b(?:is|are|was|were) (?:not |always |already |still |yet )?there(?:$|[.,;:)]| when\b| until\b| before\b| already\b| while\b| and\b)`,
		unless:  `\bhow (?:many|much|few)[^.]* there\b|\b(?:which|what)[^.]* are there\b`,
		instead: `write "exists"`,
		wrong:   []string{"A condition that is always there.", "The key is there when the server starts."},
		right:   []string{"The key exists when the server starts.", "It says how many of them are there."},
	},
	{
		pattern: `, for (?:it|they|there|nobody|none|these|those) (?:is|are|was|were|has|have|can|does|do|may|would|cannot|could)\b`,
		instead: `write "because"`,
		wrong:   []string{"It waits, for it has no slot."},
		right:   []string{"It waits, because it has no slot.", "Wait, for it to end."},
	},
	{
		pattern: `\bis (?:for|up to) (?:[a-z_]+ ){1,4}to (?:say|decide|tell|know|see)\b`,
		instead: `write "X decides"`,
		wrong:   []string{"Which one is for the server to say."},
		right:   []string{"The server decides which one."},
	},
	{
		pattern: `\b(?:has|have) not(?:$|[.,;:)])`,
		instead: `write "does not have"`,
		wrong:   []string{"It keeps what the target has and the project has not."},
		right:   []string{"It keeps refs that the project does not have.", "It has not ended."},
	},
	{
		pattern: `\b(?:is|are) (?:not )?meant[.,;:)]`,
		instead: `write "refers to"`,
		wrong:   []string{"The object that is meant, beside its name."},
		right:   []string{"The object that the reference refers to.", "It is meant for tests."},
	},
	{
		pattern: `\bwhere (?:it|that|this|one|none|nothing|they|these|there|any) (?:is|are|was|were) (?:not )?(?:set|given|missing|empty|known|needed|wanted|asked|left|allowed|none|one|any|nothing)\b`,
		instead: `write "if"`,
		wrong:   []string{"The branch where one is given.", "The reason where it is known."},
		right:   []string{"The branch, if one is given.", "The page where it is shown."},
	},
	{
		pattern: `\b(?:of which|of|with|for|after|where|has|have|takes?) so (?:many|much|long|few)\b`,
		unless:  `\bso (?:many|much|long|few)\b[^.;]* (?:that|as)\b`,
		instead: `name the number, or write "a given number of"`,
		wrong:   []string{"A reader of which so much may be read.", "A route with so many segments."},
		right:   []string{"A route with the given number of segments.", "It has so many parts that it waits."},
	},
	{
		pattern: `\bwhose (?:it|the [a-z]+|they|this) (?:is|was|are|were)\b`,
		instead: `write "who owns X" or "which X it belongs to"`,
		wrong:   []string{"A record of whose it was.", "It says whose the repository is."},
		right:   []string{"A record of the project that it belonged to."},
	},
	{
		pattern: `\bholds? (?:[a-z_]+ ){1,4}against\b`,
		instead: `write "compares X with"`,
		wrong:   []string{"It holds each answer against the table."},
		right:   []string{"It compares each answer with the table."},
	},
	{
		pattern: `\b(?:takes?|taking|taken|took) (?:[a-z_]+ ){0,2}away\b`,
		instead: `write "removes"`,
		wrong:   []string{"The kernel takes it away.", "Nobody could take the protection away."},
		right:   []string{"The kernel removes it."},
	},
	{
		pattern: `\banother(?: [a-z_]+)? than\b`,
		instead: `write "a different X from" or "other than"`,
		wrong:   []string{"The value is for another project than the one that it names."},
		right:   []string{"The value is for a different project."},
	},
	{
		pattern: `\b(?:is|are|was|were) of(?:$|[.,;:)])`,
		instead: `write "belongs to"`,
		wrong:   []string{"The project that the token is of."},
		right:   []string{"The project that the token belongs to."},
	},
	{
		pattern: `\bwhat for\b`,
		instead: `write "for what" or "the purpose"`,
		wrong:   []string{"Its value says what for."},
		right:   []string{"Its value says for what."},
	},
	{
		pattern: `\b(?:ought to|in (?:his|its|their) stead|save for|in vain|as though)\b`,
		instead: `use a word of today`,
		wrong:   []string{"It ought to wait.", "Nobody waits in vain."},
		right:   []string{"It must wait."},
	},
	{
		pattern:  `^of (?:a|an|one|what|all|every|each|kinds|those) `,
		sentence: true,
		instead:  `begin with the subject`,
		wrong:    []string{"Of a token a cache keeps only the date."},
		right:    []string{"A cache keeps only the date of a token."},
	},
	{
		pattern: `\bright (?:above|below|under|in)\b`,
		unless:  `\b(?:the|a|no|this|that|every|its|their|same) right (?:above|below|under|in)\b`,
		instead: `write "directly"`,
		wrong:   []string{"The group right above the project."},
		right:   []string{"The group directly above the project.", "It asks for the right in all namespaces."},
	},
	{
		pattern:  `^[a-z_]+ (?:is|are|was|were) (?:how|what|when|where|who|whom|whose|why)\b`,
		unless:   `^(?:that|this|it) (?:is|was)\b`,
		sentence: true, gradual: true,
		instead: `write a noun: "is the time of", "is the maximum number of", "returns the owner of"`,
		wrong:   []string{"Size is how large a file can be.", "Actor is who pushes."},
		right:   []string{"Size is the maximum size of a file."},
	},
	{
		pattern: `\b(?:nobody|somebody)\b`, gradual: true,
		instead: `name the person or the value: "no user", "another process", "nil"`,
		wrong:   []string{"A label that belongs to nobody.", "Somebody else was faster."},
		right:   []string{"A label without an owner.", "Another request was faster."},
	},
	{
		pattern: `\b(?:comes?|came) as far as\b|\bas far as (?:that|it|they) (?:is|are|goes|go)\b`, gradual: true,
		instead: `write "reaches", or name the limit`,
		wrong:   []string{"A cache that has come as far as the server."},
		right:   []string{"A cache that has reached the revision of the server."},
	},
	{
		pattern: `\breturns? (?:what|who|those)\b`, gradual: true,
		instead: `name what is returned: "returns a predicate that", "returns the caller"`,
		wrong:   []string{"Later returns what is kept of a request.", "It returns who signs in."},
		right:   []string{"Later returns the options of a request.", "It returns the caller."},
	},
	{
		pattern: `^\w+ (?:is|are) (?:of (?:how|what)|those)\b`, sentence: true, gradual: true,
		instead: `write a noun: "is the maximum number of"`,
		wrong:   []string{"Size is of how many kinds a revision can be.", "Scopes are those that a token has."},
		right:   []string{"Size is the maximum number of kinds in a revision.", "Scopes are the scopes of a token."},
	},
	{
		pattern: `\bwhat (?:tells|says)\b`, gradual: true,
		instead: `name it: "the condition", "the header", "a predicate"`,
		wrong:   []string{"The refs are sorted by what tells them apart.", "It prefers what says more."},
		right:   []string{"It sorts the refs by name."},
	},
	{
		pattern: `\bin whatever\b`, gradual: true,
		instead: `write "in any"`,
		wrong:   []string{"The text occurs in whatever case."},
		right:   []string{"The text occurs in any case."},
	},
	{
		pattern: `\bwhere (?:there|they|it|one|all|no)\b`, gradual: true,
		unless:  `\bwhere (?:it|they) (?:is|are|was|were)\b|\b(?:begins?|continues?|goes on)(?: only)? where (?:it|they)\b`,
		instead: `write "if" or "when"; for a place, name the place`,
		wrong:   []string{"It counts where no token is sent.", "The parent, where it has one.", "It waits where there is no room."},
		right:   []string{"It counts requests without a token.", "The page where it is shown.", "It goes on where it ended."},
	},
}
