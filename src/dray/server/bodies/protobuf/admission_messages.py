"""The field numbers of webhooks, admission policies and their bindings (see `messages`)."""

from __future__ import annotations

TABLE = """
MutatingWebhookConfiguration: metadata=1:ObjectMeta webhooks=2:*MutatingWebhook
MutatingWebhook: name=1 clientConfig=2:AdmissionClientConfig rules=3:*RuleWithOperations failurePolicy=4
    namespaceSelector=5:LabelSelector sideEffects=6 timeoutSeconds=7:int admissionReviewVersions=8:*text matchPolicy=9
    reinvocationPolicy=10 objectSelector=11:LabelSelector matchConditions=12:*MatchCondition
ValidatingWebhookConfiguration: metadata=1:ObjectMeta webhooks=2:*ValidatingWebhook
ValidatingWebhook: name=1 clientConfig=2:AdmissionClientConfig rules=3:*RuleWithOperations failurePolicy=4
    namespaceSelector=5:LabelSelector sideEffects=6 timeoutSeconds=7:int admissionReviewVersions=8:*text matchPolicy=9
    objectSelector=10:LabelSelector matchConditions=11:*MatchCondition
AdmissionClientConfig: service=1:AdmissionServiceReference caBundle=2:bytes url=3
AdmissionServiceReference: namespace=1 name=2 path=3 port=4:int
RuleWithOperations: operations=1:*text rule=2:+AdmissionRule
AdmissionRule: apiGroups=1:*text apiVersions=2:*text resources=3:*text scope=4
NamedRuleWithOperations: resourceNames=1:*text ruleWithOperations=2:+RuleWithOperations
MatchCondition: name=1 expression=2
MatchResources: namespaceSelector=1:LabelSelector objectSelector=2:LabelSelector
    resourceRules=3:*NamedRuleWithOperations excludeResourceRules=4:*NamedRuleWithOperations matchPolicy=7
ParamKind: apiVersion=1 kind=2
ParamRef: name=1 namespace=2 selector=3:LabelSelector parameterNotFoundAction=4
AdmissionVariable: name=1 expression=2
ValidatingAdmissionPolicy: metadata=1:ObjectMeta spec=2:ValidatingAdmissionPolicySpec
    status=3:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicySpec: paramKind=1:ParamKind matchConstraints=2:MatchResources
    validations=3:*AdmissionValidation failurePolicy=4 auditAnnotations=5:*AuditAnnotation
    matchConditions=6:*MatchCondition variables=7:*AdmissionVariable
AdmissionValidation: expression=1 message=2 reason=3 messageExpression=4
AuditAnnotation: key=1 valueExpression=2
ValidatingAdmissionPolicyStatus: observedGeneration=1:int typeChecking=2:TypeChecking conditions=3:*Condition
TypeChecking: expressionWarnings=1:*ExpressionWarning
ExpressionWarning: fieldRef=2 warning=3
ValidatingAdmissionPolicyBinding: metadata=1:ObjectMeta spec=2:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec: policyName=1 paramRef=2:ParamRef matchResources=3:MatchResources
    validationActions=4:*text
MutatingAdmissionPolicy: metadata=1:ObjectMeta spec=2:MutatingAdmissionPolicySpec
MutatingAdmissionPolicySpec: paramKind=1:ParamKind matchConstraints=2:MatchResources variables=3:*AdmissionVariable
    mutations=4:*AdmissionMutation failurePolicy=5 matchConditions=6:*MatchCondition reinvocationPolicy=7
AdmissionMutation: patchType=2 applyConfiguration=3:AdmissionExpression jsonPatch=4:AdmissionExpression
AdmissionExpression: expression=1
MutatingAdmissionPolicyBinding: metadata=1:ObjectMeta spec=2:MutatingAdmissionPolicyBindingSpec
MutatingAdmissionPolicyBindingSpec: policyName=1 paramRef=2:ParamRef matchResources=3:MatchResources
"""

KINDS = {
    ("admissionregistration.k8s.io/v1", kind): kind
    for kind in (
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
}
